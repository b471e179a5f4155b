//! Recorded results of samples whose sequences training requests name.

use std::time::Duration;

use trainyard_protocol::{RequestId, TenantId};

use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::records;
use crate::writer::write::Write;
use crate::{Error, RecordedResult, Scheduler, Timestamp};

/// Shortest time between two recorded uses, so that training rarely writes.
const RENEWAL: Duration = Duration::from_secs(3600);

impl Core {
    /// Returns the time before which a record must have been used to need renewal.
    fn renewal_due_before(&self) -> Timestamp {
        self.now().minus(RENEWAL.min(self.options.retention / 2))
    }
}

impl Scheduler {
    /// Returns the result of a sample that was submitted as `recorded`. Returns `None` for an unknown or failed sample,
    /// and when the retention since its last use is over.
    ///
    /// # Errors
    /// Fails if store or storage can't be read.
    pub async fn recorded_result(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<RecordedResult>, Error> {
        // Return the connection to the pool before a file is read.
        let found = records::recorded_result(&mut self.core.reader_of(tenant).await?, tenant, request).await?;
        let Some(record) = found else { return Ok(None) };
        let renewal_due = record.used_at < self.core.renewal_due_before();
        Ok(Some(RecordedResult { payload: self.core.blobs.get(record.result).await?, renewal_due }))
    }

    /// Keeps the results of recorded samples for another retention. Other requests are ignored.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn renew_records(&self, tenant: &TenantId, requests: Vec<RequestId>) -> Result<(), Error> {
        if requests.is_empty() {
            return Ok(());
        }
        self.write(RenewRecords { tenant: tenant.clone(), requests }).await
    }
}

struct RenewRecords {
    tenant: TenantId,
    requests: Vec<RequestId>,
}

impl Write for RenewRecords {
    type Output = ();

    const UNDO: bool = false;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let due = core.renewal_due_before();
        records::renew_records(conn, &self.tenant, &self.requests, due, core.now()).await
    }
}
