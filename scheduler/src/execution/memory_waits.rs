//! Runs that wait for memory: recorded by their worker, so that any process can tell a client why nothing happens.

use trainyard_protocol::{RequestId, RunId, TenantId};

use crate::context::core::{Core, Urgency};
use crate::context::lock::lock;
use crate::store::db::{Conn, RowScope};
use crate::store::runs;
use crate::writer::write::Write;
use crate::{Error, MemoryWait, Scheduler};

impl Scheduler {
    /// Why a pending request of a run waits although it would be next: the run does not fit into its worker's memory.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn memory_wait(&self, tenant: &TenantId, request: &RequestId) -> Result<Option<MemoryWait>, Error> {
        let here = lock(&self.core.queue).memory_wait(tenant, request);
        if here.is_some() || !self.core.is_shared() {
            return Ok(here);
        }
        runs::memory_wait(&mut self.core.reader_of(tenant).await?, tenant, request).await
    }
}

/// Records that a run waits for memory under a lease, or that it waits no longer.
pub(crate) struct RecordMemoryWait {
    pub(crate) run: RunId,
    pub(crate) epoch: i64,
    pub(crate) wait: Option<MemoryWait>,
}

impl Write for RecordMemoryWait {
    type Output = ();
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        runs::set_memory_wait(conn, &self.run, self.epoch, self.wait.as_ref()).await
    }
}
