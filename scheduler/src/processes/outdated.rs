//! A process whose database was migrated to a schema that its program can't work with: it reads and writes nothing more.

use crate::context::core::Core;
use crate::store::schema;
use crate::{Error, Scheduler};

impl Scheduler {
    /// Whether the database was migrated to a schema that this program can't work with. From then on every call fails as if
    /// the database could not be reached: the process has to end, and what it has not recorded is executed again.
    pub fn is_outdated(&self) -> bool {
        self.core.is_outdated()
    }

    /// Returns the reason once that happens.
    pub async fn outdated(&self) -> Error {
        let mut outdated = self.core.outdated.subscribe();
        let reason = outdated.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

impl Core {
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.borrow().is_some()
    }

    /// Looks whether the schema can still be worked with; others may migrate it at any time, but not a SQLite file that
    /// this process has.
    pub(crate) async fn check_schema(&self) -> Result<(), Error> {
        if !self.is_shared() {
            return Ok(());
        }
        let conn = &mut self.system_reader().await?;
        match schema::ensure_workable(conn, &self.options.database).await {
            Err(error @ Error::Invalid(_)) => {
                tracing::error!(%error, "database was migrated for newer programs: this one stops");
                self.outdated.send_replace(Some(error.clone()));
                Err(error)
            }
            done => done.map(drop),
        }
    }
}
