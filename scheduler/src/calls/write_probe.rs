//! A probe of whether the store can be written, for health checks.

use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::write_probes;
use crate::writer::write::Write;
use crate::{Error, Scheduler};

impl Scheduler {
    /// Commits a transaction that writes something and leaves nothing behind.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn probe_write(&self) -> Result<(), Error> {
        self.write(Probe).await
    }
}

struct Probe;

impl Write for Probe {
    type Output = ();

    const UNDO: bool = false;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        write_probes::probe_write(conn, &core.process).await
    }
}
