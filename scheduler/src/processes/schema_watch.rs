//! The state of a process on a database that was migrated for newer programs.

use tokio::sync::watch;

use crate::context::error::Error;

/// Reason why this program no longer supports the database, once its schema has changed.
pub(crate) struct SchemaWatch {
    outdated: watch::Sender<Option<Error>>,
}

impl Default for SchemaWatch {
    fn default() -> Self {
        Self { outdated: watch::Sender::new(None) }
    }
}

impl SchemaWatch {
    /// Records that this program no longer supports the database.
    pub(super) fn set_outdated(&self, reason: Error) {
        self.outdated.send_replace(Some(reason));
    }

    pub(super) fn is_outdated(&self) -> bool {
        self.outdated.borrow().is_some()
    }

    /// Waits until this program no longer supports the database, and returns the reason.
    pub(super) async fn outdated(&self) -> Error {
        let mut outdated = self.outdated.subscribe();
        let reason = outdated.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}
