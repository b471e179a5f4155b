//! Handles a migration of the database to a schema that this program does not support: the process stops reading and
//! writing.

use crate::context::core::Core;
use crate::store::schema;
use crate::{Error, Scheduler};

impl Scheduler {
    /// Returns whether the database was migrated to a schema that this program does not support. From then on every
    /// call fails as if the database could not be reached. The process must end; unrecorded requests are executed
    /// again.
    pub fn is_outdated(&self) -> bool {
        self.core.is_outdated()
    }

    /// Waits until [`Self::is_outdated`] is true, then returns the reason.
    pub async fn outdated(&self) -> Error {
        self.core.schema.outdated().await
    }
}

impl Core {
    pub(crate) fn is_outdated(&self) -> bool {
        self.schema.is_outdated()
    }

    /// Checks whether the schema is still supported. Others may migrate it at any time, except a SQLite file that this
    /// process uses.
    pub(crate) async fn check_schema(&self) -> Result<(), Error> {
        if !self.is_shared() {
            return Ok(());
        }
        let conn = &mut self.system_reader().await?;
        match schema::ensure_workable(conn, &self.options.database).await {
            Err(error @ Error::Invalid(_)) => {
                tracing::error!(%error, "database was migrated by a newer release: this process stops");
                self.schema.set_outdated(error.clone());
                Err(error)
            }
            done => done.map(drop),
        }
    }
}
