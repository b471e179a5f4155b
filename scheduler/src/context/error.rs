//! Errors of a scheduler's calls.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::Refusal;

/// A failed call. The text is for the client, except for [`Error::Store`], whose detail is logged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The object does not exist, or belongs to another tenant (HTTP 404).
    #[error("{what} {id} does not exist")]
    NotFound {
        /// Kind of the object, e.g. `session`.
        what: &'static str,
        /// Id that was looked up.
        id: String,
    },
    /// The object existed, but has expired (HTTP 410).
    #[error("{what} {id} has ended or expired")]
    Gone {
        /// Kind of the object, e.g. `session` or `request`.
        what: &'static str,
        /// Id that was looked up.
        id: String,
    },
    /// The snapshot of a sampling session was deleted after long disuse (HTTP 410).
    #[error(
        "the weights of sampling session {id} were deleted: weights saved without a name are kept while they are among the last \
         {kept} of their run in the storage or were used within the last {seconds} s; save them again, under a name if they \
         are used rarely"
    )]
    SnapshotCollected {
        /// Id of the sampling session.
        id: String,
        /// Number of a run's snapshots that are kept in any case.
        kept: usize,
        /// Seconds for which a snapshot is kept after its last use.
        seconds: u64,
    },
    /// The session no longer accepts requests.
    #[error("session {id} is finished")]
    SessionFinished {
        /// Id of the session.
        id: String,
    },
    /// A request with this identity exists but has other content (HTTP 422).
    #[error("{0}")]
    Mismatch(String),
    /// The request is wrong (HTTP 400).
    #[error("{0}")]
    Invalid(String),
    /// The position in a run's order is too far ahead of the first missing one (HTTP 400).
    #[error(
        "seq_id: {seq_id} is too far ahead: the run waits for {next}, and numbers up to {most} after it are accepted"
    )]
    SeqGap {
        /// Position of the refused request.
        seq_id: i64,
        /// First position that is missing.
        next: i64,
        /// Largest accepted distance from that position.
        most: i64,
    },
    /// A quota of the tenant is used up (HTTP 429); the same call may succeed later.
    #[error("{0}")]
    Quota(Refusal),
    /// Other reads of the tenant hold all connections that it may have (HTTP 429); the same call may succeed soon.
    #[error("failed to {0}: too many of this organisation's requests are reading; try again")]
    TooManyReads(&'static str),
    /// The store can't be reached at present (HTTP 503); the same call may succeed soon.
    #[error("failed to {0}: the store can't be reached")]
    Unavailable(&'static str),
    /// A disk is full (HTTP 503); the same call may succeed once there is space.
    #[error("failed to {0}: no disk space left")]
    NoSpace(&'static str),
    /// A PostgreSQL server can't be reached through TLS because certificates, keys or settings are wrong.
    #[error("no TLS connection to the database: {0}")]
    Tls(String),
    /// Concurrent changes conflicted in every attempt (HTTP 503).
    #[error("failed to {0}: too many concurrent changes")]
    Conflict(&'static str),
    /// The store failed (HTTP 500); the detail is in the log.
    #[error("failed to {0}: the store failed")]
    Store(&'static str),
}

/// The wait of a read that its tenant's other reads kept from a connection, in the form of the driver's errors.
#[derive(Debug, thiserror::Error)]
#[error("a tenant's reads use all connections allowed to it")]
pub(crate) struct TooManyReads;

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
            sqlx::Error::Configuration(error) if error.is::<TooManyReads>() => Self::TooManyReads(doing),
            sqlx::Error::Database(refusal) => match refusal.code().as_deref() {
                // Serialization failure, deadlock, unique violation by a concurrent writer, lock timeout.
                Some("40001" | "40P01" | "23505" | "55P03") => {
                    tracing::debug!(doing, %error, "conflict with a concurrent change");
                    Self::Conflict(doing)
                }
                Some("53100") => Self::no_space(doing, error),
                code if is_of_sqlite(refusal.as_ref()) && code.is_some_and(is_full) => Self::no_space(doing, error),
                // SQLSTATEs of statements that took too long, of too many connections, and of exhausted resources:
                // memory, others, input and output.
                Some(code) if ends_connection(code) || is_overloaded(code) => {
                    tracing::warn!(doing, %error, "the database can't be reached");
                    Self::Unavailable(doing)
                }
                // PostgreSQL does not accept this character in text; SQLite does, but finds nothing under it.
                Some("22021") => Self::Invalid("text must not contain the character U+0000".to_owned()),
                _ => Self::store(doing, error),
            },
            _ => Self::store(doing, error),
        }
    }

    /// Logs that a disk is full, and returns the error for the client.
    pub(crate) fn no_space(doing: &'static str, detail: impl std::fmt::Display) -> Self {
        tracing::warn!(doing, detail = %detail, "no disk space is left");
        Self::NoSpace(doing)
    }

    /// Logs the detail of a store failure, which is not sent to the client.
    pub(crate) fn store(doing: &'static str, detail: impl std::fmt::Display) -> Self {
        tracing::error!(doing, detail = %detail, "the store failed");
        Self::Store(doing)
    }
}

/// Returns whether a connection is of no further use after a refusal with this SQLSTATE. The server lost it, is about to
/// end it, or can't be written: after a failover, the same address may lead to a server that can.
pub(crate) fn ends_connection(code: &str) -> bool {
    const READ_ONLY: &str = "25006";
    // Of the class "operator intervention" all but cancelled statements; then time limits of a session.
    let ended = ["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"];
    code.starts_with("08") || code == READ_ONLY || ended.contains(&code)
}

fn is_overloaded(code: &str) -> bool {
    matches!(code, "53300" | "57014" | "53000" | "53200" | "53400" | "58000" | "58030")
}

fn is_of_sqlite(error: &(dyn DatabaseError + 'static)) -> bool {
    error.try_downcast_ref::<SqliteError>().is_some()
}

/// Returns whether a code of SQLite reports a full disk: while writing, or while extending the index of its log.
fn is_full(code: &str) -> bool {
    const FULL: &str = "13";
    const IOERR_SHMSIZE: &str = "4874";
    code == FULL || code == IOERR_SHMSIZE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_after_which_another_server_may_answer_are_told_from_others() {
        for code in ["25006", "57P01", "57P02", "57P03", "57P04", "57P05", "08000", "08001", "08004", "08007", "08P01"]
        {
            assert!(ends_connection(code), "{code}");
        }
        // A cancelled statement, too many connections, a full disk, a duplicate, and codes of SQLite.
        for code in ["57014", "53300", "53100", "23505", "42501", "8", "1032", "2067", ""] {
            assert!(!ends_connection(code), "{code}");
        }
    }
}
