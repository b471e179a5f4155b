//! What requests and checkpoints use.

use trainyard_protocol::SessionId;

use crate::{RequestKind, Timestamp};

/// Tokens that a request used, by what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the examples of a forward or backward pass.
    pub trained: u64,
    /// Of a prompt, computed.
    pub prefill: u64,
    /// Of a prompt, taken from the prefix cache.
    pub cached: u64,
    /// Generated.
    pub sampled: u64,
}

impl Tokens {
    /// Of all kinds.
    pub fn total(self) -> u64 {
        self.trained + self.prefill + self.cached + self.sampled
    }
}

/// Whom use is attributed to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribution {
    /// The base model.
    pub base_model: String,
    /// The session.
    pub session: SessionId,
    /// The session's project: the present one, or that at the time of use when the session is gone.
    pub project: Option<String>,
    /// The email of the user whose key created the session.
    pub user: Option<String>,
}

/// What a request used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestUsage {
    /// The request.
    pub request: String,
    /// When it ended.
    pub at: Timestamp,
    /// What it was.
    pub kind: RequestKind,
    /// Whom it is attributed to.
    pub of: Attribution,
    /// What it used.
    pub tokens: Tokens,
}

/// What was used in an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourlyUsage {
    /// The start of the hour.
    pub hour: Timestamp,
    /// Whom it is attributed to.
    pub of: Attribution,
    /// Sum over the requests that ended in the hour.
    pub tokens: Tokens,
}

/// A checkpoint that was stored for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// When it was registered.
    pub from: Timestamp,
    /// When it was deleted or replaced, if it was.
    pub to: Option<Timestamp>,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// Whom it is attributed to.
    pub of: Attribution,
}

/// What is stored now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageInUse {
    /// The project of the sessions.
    pub project: Option<String>,
    /// The email of the user whose keys created the sessions.
    pub user: Option<String>,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Bytes of all their files.
    pub size_bytes: u64,
}
