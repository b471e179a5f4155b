//! Who does what is being done, for the audit log.

use std::future::Future;

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// In words: a user, a key, a program.
    pub name: String,
    /// The API key that was used, where the store has it.
    pub key: Option<i64>,
    /// The id of the user whose key that is.
    pub user: Option<String>,
    /// Where the call came from.
    pub address: Option<String>,
}

tokio::task_local! {
    static CURRENT: Actor;
}

impl Actor {
    /// The service itself, which acts when nobody asks it to.
    pub fn service() -> Self {
        Self { name: "the service".to_owned(), key: None, user: None, address: None }
    }

    /// Runs a future on behalf of this actor.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// On whose behalf the current task works.
    pub fn current() -> Self {
        CURRENT.try_with(Clone::clone).unwrap_or_else(|_| Self::service())
    }
}
