//! Usage by requests and checkpoints.

use trainyard_protocol::SessionId;

use crate::{RequestKind, Timestamp};

/// Tokens that a request used, by kind of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Number of tokens of examples of a forward or backward pass.
    pub trained: u64,
    /// Number of tokens of a prompt that were computed.
    pub prefill: u64,
    /// Number of tokens of a prompt that were taken from the prefix cache.
    pub cached: u64,
    /// Number of tokens that were generated.
    pub sampled: u64,
}

impl Tokens {
    /// Returns the number of tokens of all kinds.
    pub fn total(self) -> u64 {
        self.trained + self.prefill + self.cached + self.sampled
    }
}

/// Model, session, project and user to which usage is attributed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribution {
    /// Name of the base model.
    pub base_model: String,
    /// Id of the session.
    pub session: SessionId,
    /// Project of the session: the present one, or the one at the time of use if the session was deleted.
    pub project: Option<String>,
    /// Email of the user whose key created the session.
    pub user: Option<String>,
}

/// Usage of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestUsage {
    /// Id of the request.
    pub request: String,
    /// Time when the request ended.
    pub at: Timestamp,
    /// Kind of the request.
    pub kind: RequestKind,
    /// Attribution of the usage.
    pub of: Attribution,
    /// Tokens that the request used.
    pub tokens: Tokens,
}

/// Usage of one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourlyUsage {
    /// Start of the hour.
    pub hour: Timestamp,
    /// Attribution of the usage.
    pub of: Attribution,
    /// Sum over the requests that ended in the hour.
    pub tokens: Tokens,
}

/// A checkpoint that was stored for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Time when the checkpoint was registered.
    pub from: Timestamp,
    /// Time when the checkpoint was deleted or replaced, if it was.
    pub to: Option<Timestamp>,
    /// Total size of its files in bytes.
    pub size_bytes: u64,
    /// Attribution of the storage.
    pub of: Attribution,
}

/// Storage in use at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageInUse {
    /// Project of the sessions.
    pub project: Option<String>,
    /// Email of the user whose keys created the sessions.
    pub user: Option<String>,
    /// Number of checkpoints stored.
    pub checkpoints: u64,
    /// Total size of their files in bytes.
    pub size_bytes: u64,
}
