//! How a call fails.

/// A failed call. The text is for the client, except for [`Error::Store`], whose detail is logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such thing, or it belongs to another tenant.
    #[error("{what} {id} does not exist")]
    NotFound {
        /// What was looked for, e.g. `session`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// It existed, and its time is over.
    #[error("{what} {id} is over")]
    Gone {
        /// What was looked for, e.g. `session` or `request`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The session accepts nothing more.
    #[error("session {id} is finished")]
    SessionFinished {
        /// The session.
        id: String,
    },
    /// A request with this identity exists and has other content (HTTP 422).
    #[error("{0}")]
    Mismatch(String),
    /// The request is wrong (HTTP 400).
    #[error("{0}")]
    Invalid(String),
    /// The store failed (HTTP 500); the detail is in the log.
    #[error("the store failed while it tried to {0}")]
    Store(&'static str),
}

impl Error {
    /// There is no such thing.
    pub(crate) fn not_found(what: &'static str, id: impl ToString) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// Logs the detail of a store failure and keeps it from the client.
    pub(crate) fn store(doing: &'static str, detail: impl std::fmt::Display) -> Self {
        tracing::error!(doing, detail = %detail, "the store failed");
        Self::Store(doing)
    }
}
