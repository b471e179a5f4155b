//! Runs that wait for memory. Their worker records them, so that any process can tell a client the reason for the
//! delay.

use trainyard_protocol::{RequestId, RunId, TenantId};

use crate::context::core::{Core, Urgency};
use crate::store::db::{Conn, RowScope};
use crate::store::runs;
use crate::writer::write::Write;
use crate::{Error, MemoryWait, Scheduler};

impl Scheduler {
    /// Returns the memory for which a pending request waits although it is next: its run does not fit into the worker's
    /// memory.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn memory_wait(&self, tenant: &TenantId, request: &RequestId) -> Result<Option<MemoryWait>, Error> {
        let here = self.core.queue.read().memory_wait(tenant, request);
        if here.is_some() || !self.core.is_shared() {
            return Ok(here);
        }
        runs::memory_wait(&mut self.core.reader_of(tenant).await?, tenant, request).await
    }
}

/// A write that records the beginning or the end of a run's wait for memory under a lease.
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
