//! Records isolated starts of quarantined requests.

use std::sync::Arc;

use trainyard_protocol::RequestId;

use crate::Error;
use crate::context::core::{Core, Urgency};
use crate::store::db::{Conn, RowScope};
use crate::store::requests;
use crate::writer::write::Write;

/// A write that counts the isolated start of a quarantined request before it starts, so that the next process knows of
/// it after a crash.
pub(crate) struct RecordIsolatedStart(pub(crate) RequestId);

impl Write for RecordIsolatedStart {
    type Output = ();
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let Some(worker) = core.worker_id() else { return Ok(()) };
        requests::count_isolated_start(conn, worker, &self.0).await
    }

    fn committed(&mut self, (): &(), core: &Arc<Core>) {
        tracing::warn!(request = %self.0, "executing quarantined request in isolation: workers crashed with it");
        core.with_queue(|queue| queue.isolated_start_recorded(&self.0));
    }
}
