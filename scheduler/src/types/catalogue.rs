//! Runs and checkpoints in listings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{RunId, RunSpec, SessionId, TenantId, TinkerPath};

use super::text_enum;
use crate::Timestamp;

/// A page of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of entries to return.
    pub limit: u32,
    /// Number of entries to skip.
    pub offset: u64,
}

/// Owners whose objects a listing contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessScope {
    /// Objects of the tenant itself.
    #[default]
    Owned,
    /// Objects of the tenant, and public objects of other tenants.
    Accessible,
}

/// Filter for a listing of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Owners whose runs are listed.
    pub scope: AccessScope,
    /// Project of the tenant; only runs of sessions in it are listed.
    pub project_id: Option<String>,
}

text_enum!(
    /// The state of a run.
    RunState {
        /// The request that creates the run is queued or running.
        Creating = "creating",
        /// The run was created and accepts requests.
        Ready = "ready",
        /// The creation of the run failed, or the run could not be restored.
        Failed = "failed",
    }
);

impl RunState {
    /// Whether a transition to `next` is allowed.
    pub fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Creating, Self::Ready) | (Self::Creating | Self::Ready, Self::Failed))
    }
}

/// A training run of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Id of the run, `<session>:train:<model_seq_id>`.
    pub id: RunId,
    /// Tenant that owns the run.
    pub owner: TenantId,
    /// Session that created the run; the run outlives it.
    pub session: SessionId,
    /// Base model, adapter and optimizer.
    pub spec: RunSpec,
    /// State that decides whether the run can be used.
    pub state: RunState,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
    /// Time when the creation was accepted.
    pub created_at: Timestamp,
    /// Time when the last request was accepted, to a second.
    pub last_request_at: Timestamp,
    /// Whether the weights could not be restored after a restart.
    pub corrupted: bool,
    /// Takeovers by workers with other numerics, oldest first.
    pub numerics_changes: Vec<NumericsChange>,
}

/// A takeover of a run by a worker with other numerics: other kernels, or another type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumericsChange {
    /// Time of the takeover, in ms since the epoch.
    pub at: i64,
    /// Arithmetic before the takeover, in one line.
    pub from: String,
    /// Arithmetic after the takeover, in one line.
    pub to: String,
}

/// A checkpoint to register, whose folder is complete.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// Path `tinker://…` that clients use.
    pub path: TinkerPath,
    /// Whether an older checkpoint of the same path is replaced; otherwise such a checkpoint makes the save fail.
    pub overwrite: bool,
    /// Folder of the checkpoint, relative to the storage's root.
    pub dir: PathBuf,
    /// Total size of its files in bytes.
    pub size_bytes: u64,
    /// Base model, adapter and optimizer of the run.
    pub spec: RunSpec,
    /// Seconds until the checkpoint expires; never if `None`.
    pub expires_in: Option<i64>,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
}

/// A checkpoint in the storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Path `tinker://…` that clients use.
    pub path: TinkerPath,
    /// Base model, adapter and optimizer of the run.
    pub spec: RunSpec,
    /// Folder of the checkpoint, relative to the storage's root.
    pub dir: PathBuf,
    /// Time when the checkpoint was registered.
    pub created_at: Timestamp,
    /// Total size of its files in bytes.
    pub size_bytes: u64,
    /// Whether every tenant may read it.
    pub public: bool,
    /// Time when the checkpoint expires; never if `None`.
    pub expires_at: Option<Timestamp>,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
}

/// Report of [`Scheduler::maintain`](crate::Scheduler::maintain), with the work that it leaves to the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceReport {
    /// Sessions that the call expired.
    pub sessions: Vec<SessionId>,
    /// Expired checkpoints, for the caller to delete.
    pub checkpoints: Vec<(TenantId, Checkpoint)>,
}
