//! Runs and checkpoints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{RunId, RunSpec, SessionId, TenantId, TinkerPath};

use super::text_enum;
use crate::Timestamp;

/// A page of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most entries to return.
    pub limit: u32,
    /// Entries to leave out.
    pub offset: u64,
}

/// Whose objects a listing shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessScope {
    /// The tenant's own.
    #[default]
    Owned,
    /// Those, and what other tenants have made public.
    Accessible,
}

/// Which runs a listing shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Whose runs.
    pub scope: AccessScope,
    /// Those of sessions in this project of the tenant alone.
    pub project_id: Option<String>,
}

text_enum!(
    /// The state of a run.
    RunState {
        /// The request that creates it is queued or running.
        Creating = "creating",
        /// It was created and accepts requests.
        Ready = "ready",
        /// Its creation failed, or it could not be restored.
        Failed = "failed",
    }
);

impl RunState {
    /// Whether a transition to `next` is allowed.
    pub fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Creating, Self::Ready) | (Self::Creating | Self::Ready, Self::Failed))
    }
}

/// A training run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `<session>:train:<model_seq_id>`.
    pub id: RunId,
    /// Whose it is.
    pub owner: TenantId,
    /// The session that created it; the run outlives it.
    pub session: SessionId,
    /// Base model, adapter and optimizer.
    pub spec: RunSpec,
    /// Whether it can be used.
    pub state: RunState,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
    /// When its creation was accepted.
    pub created_at: Timestamp,
    /// When its last request was accepted, to a second.
    pub last_request_at: Timestamp,
    /// Its weights could not be restored after a restart.
    pub corrupted: bool,
    /// When a worker that computes in another way continued it, oldest first.
    pub numerics_changes: Vec<NumericsChange>,
}

/// A run was continued by a worker that computes in another way: with other kernels, or another type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumericsChange {
    /// When, in ms since the epoch.
    pub at: i64,
    /// How it was computed, in one line.
    pub from: String,
    /// How it is computed from then on.
    pub to: String,
}

/// A checkpoint to register, once its folder is complete.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// The `tinker://` path that clients use.
    pub path: TinkerPath,
    /// Replace an older checkpoint of the same path; without it such a checkpoint makes the save fail.
    pub overwrite: bool,
    /// Its folder, relative to the storage's root.
    pub dir: PathBuf,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// Base model, adapter and optimizer of its run.
    pub spec: RunSpec,
    /// Seconds until it expires; never when `None`.
    pub expires_in: Option<i64>,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
}

/// A saved checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The `tinker://` path that clients use.
    pub path: TinkerPath,
    /// Base model, adapter and optimizer of its run.
    pub spec: RunSpec,
    /// Its folder, relative to the storage's root.
    pub dir: PathBuf,
    /// When it was registered.
    pub created_at: Timestamp,
    /// Bytes of all its files.
    pub size_bytes: u64,
    /// Whether every tenant may read it.
    pub public: bool,
    /// When it expires; never when `None`.
    pub expires_at: Option<Timestamp>,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
}

/// What [`Scheduler::maintain`](crate::Scheduler::maintain) did, and what it leaves to the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceReport {
    /// Sessions that expired.
    pub sessions: Vec<SessionId>,
    /// Expired checkpoints, for the caller to delete.
    pub checkpoints: Vec<(TenantId, Checkpoint)>,
}
