//! Values of searches for checkpoints.

use std::collections::BTreeMap;

use trainyard_protocol::{CheckpointKind, TenantId, TinkerPath};

use super::{AccessScope, Checkpoint};
use crate::Timestamp;

/// Conditions of a search for checkpoints; all given ones must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointSearch {
    /// Owners whose checkpoints are searched.
    pub scope: AccessScope,
    /// Tenants to which the results are restricted.
    pub owners: Option<Vec<TenantId>>,
    /// Projects of the tenant to which the results are restricted.
    pub project_ids: Option<Vec<String>>,
    /// Entries that the user metadata must contain.
    pub user_metadata: BTreeMap<String, String>,
    /// Kind that the checkpoints must have.
    pub kind: Option<CheckpointKind>,
    /// Base models to which the results are restricted.
    pub base_models: Option<Vec<String>>,
    /// Maximum number of checkpoints to return.
    pub limit: u32,
    /// Position behind which the results begin.
    pub after: Option<CheckpointPosition>,
}

/// A place in the order of checkpoints: newest first, then by descending path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPosition {
    /// Time when the checkpoint was made.
    pub created_at: Timestamp,
    /// Path of the checkpoint.
    pub path: TinkerPath,
}

/// A page of a search's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundCheckpoints {
    /// Checkpoints of the page, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Position at which the next page begins; `None` on the last page.
    pub next: Option<CheckpointPosition>,
}
