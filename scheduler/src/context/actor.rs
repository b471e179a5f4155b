//! The actor of the current task, for the audit log.

use std::future::Future;

/// Actor on whose behalf a task works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Description: a user, a key or a program.
    pub name: String,
    /// API key that was used, if it is in the store.
    pub key: Option<i64>,
    /// Id of the user who owns the key.
    pub user: Option<String>,
    /// Network address of the caller.
    pub address: Option<String>,
}

tokio::task_local! {
    static CURRENT: Actor;
}

impl Actor {
    /// Returns the service itself, which acts without a caller.
    pub fn service() -> Self {
        Self { name: "the service".to_owned(), key: None, user: None, address: None }
    }

    /// Runs a future on behalf of this actor.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Returns the actor on whose behalf the current task works.
    pub fn current() -> Self {
        CURRENT.try_with(Clone::clone).unwrap_or_else(|_| Self::service())
    }
}
