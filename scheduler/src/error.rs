//! How a call fails.

use crate::Refusal;

/// A failed call. The text is for the client, except for [`Error::Store`], whose detail is logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not exist, or belongs to another tenant (HTTP 404).
    #[error("{what} {id} does not exist")]
    NotFound {
        /// What was looked for, e.g. `session`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// It existed, and has expired (HTTP 410).
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
    /// A quota of the tenant is used up (HTTP 429); the same call may succeed later.
    #[error("{0}")]
    Quota(Refusal),
    /// The store can't be reached now (HTTP 503); the same call may succeed soon.
    #[error("the store could not be reached to {0}")]
    Unavailable(&'static str),
    /// A PostgreSQL server that should be reached through TLS can't be: certificates, keys or settings are wrong.
    #[error("no TLS connection to the database: {0}")]
    Tls(String),
    /// Concurrent changes conflicted in every attempt (HTTP 503).
    #[error("too many changes at once to {0}")]
    Conflict(&'static str),
    /// The store failed (HTTP 500); the detail is in the log.
    #[error("the store failed while it tried to {0}")]
    Store(&'static str),
}

impl Error {
    pub(crate) fn not_found(what: &'static str, id: impl ToString) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// Classifies a failure of the database.
    pub(crate) fn database(doing: &'static str, error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::WorkerCrashed => {
                tracing::warn!(doing, %error, "the database can't be reached");
                Self::Unavailable(doing)
            }
            sqlx::Error::Database(refusal) => match refusal.code().as_deref() {
                // Serialization failure, deadlock, unique violation by a concurrent writer, lock timeout.
                Some("40001" | "40P01" | "23505" | "55P03") => {
                    tracing::debug!(doing, %error, "a concurrent change was in the way");
                    Self::Conflict(doing)
                }
                // Shutdown, crash recovery, start-up, no connection left, lost connection; a statement that took too
                // long, and exhausted resources: disk, memory, others, input and output.
                Some(
                    "57P01" | "57P02" | "57P03" | "53300" | "25P03" | "08000" | "08003" | "08006" | "57014" | "53000"
                    | "53100" | "53200" | "53400" | "58000" | "58030",
                ) => {
                    tracing::warn!(doing, %error, "the database can't be reached");
                    Self::Unavailable(doing)
                }
                // PostgreSQL has no text with this character; SQLite has, and finds nothing under it.
                Some("22021") => Self::Invalid("text must not contain the character U+0000".to_owned()),
                _ => Self::store(doing, error),
            },
            _ => Self::store(doing, error),
        }
    }

    /// Logs the detail of a store failure and keeps it from the client.
    pub(crate) fn store(doing: &'static str, detail: impl std::fmt::Display) -> Self {
        tracing::error!(doing, detail = %detail, "the store failed");
        Self::Store(doing)
    }
}
