//! Garbage collection of uploads.

use std::path::PathBuf;

use crate::Error;
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::uploads;
use crate::writer::write::Write;

impl Core {
    /// Deletes uploads that have expired.
    pub(crate) async fn collect_uploads(&self) -> Result<(), Error> {
        if uploads::next_expiry(&mut self.system_reader().await?).await?.is_none_or(|at| at > self.now()) {
            return Ok(());
        }
        for dir in self.call(DeleteExpired).await? {
            self.remove_folder(dir).await;
        }
        Ok(())
    }
}

struct DeleteExpired;

impl Write for DeleteExpired {
    type Output = Vec<PathBuf>;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Vec<PathBuf>, Error> {
        uploads::delete_expired(conn, core.now()).await
    }
}
