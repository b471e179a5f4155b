//! Runs and checkpoints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trainyard_protocol::{RunId, RunSpec, SessionId, TenantId, TinkerPath};

use super::text_enum;
use crate::Timestamp;

/// A part of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most entries to return.
    pub limit: u32,
    /// Entries to leave out.
    pub offset: u64,
}

text_enum!(
    /// Where a run stands.
    RunState {
        /// Its creation is queued or running.
        Creating = "creating",
        /// It exists.
        Ready = "ready",
        /// Its creation failed, or it could not be restored.
        Failed = "failed",
    }
);

impl RunState {
    /// Whether `next` may follow.
    pub fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Creating, Self::Ready) | (Self::Creating | Self::Ready, Self::Failed))
    }
}

/// A training run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `<session>:train:<model_seq_id>`.
    pub id: RunId,
    /// The session it belongs to.
    pub session: SessionId,
    /// What it trains.
    pub spec: RunSpec,
    /// Where it stands.
    pub state: RunState,
    /// What the client attached.
    pub user_metadata: BTreeMap<String, String>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its last request was submitted.
    pub last_request_at: Timestamp,
    /// Its weights could not be restored after a restart.
    pub corrupted: bool,
}

/// A checkpoint to register, once its folder is complete.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// Its path.
    pub path: TinkerPath,
    /// It replaces an older checkpoint of the same path; otherwise there must be none, or its save fails.
    pub overwrite: bool,
    /// Its folder in the storage.
    pub dir: PathBuf,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// What the run trained.
    pub spec: RunSpec,
    /// Seconds until it expires; never when `None`.
    pub expires_in: Option<i64>,
    /// What the client attached.
    pub user_metadata: BTreeMap<String, String>,
}

/// A saved checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Its path.
    pub path: TinkerPath,
    /// What the run trained.
    pub spec: RunSpec,
    /// Its folder in the storage.
    pub dir: PathBuf,
    /// When it was registered.
    pub created_at: Timestamp,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// Whether every tenant may read it.
    pub public: bool,
    /// When it expires; never when `None`.
    pub expires_at: Option<Timestamp>,
    /// What the client attached.
    pub user_metadata: BTreeMap<String, String>,
}

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swept {
    /// Sessions that expired in this sweep.
    pub sessions: Vec<SessionId>,
    /// Checkpoints whose time is over; the caller deletes them.
    pub checkpoints: Vec<(TenantId, Checkpoint)>,
}
