//! Searching checkpoints.

use std::collections::BTreeMap;

use trainyard_protocol::{CheckpointKind, TenantId, TinkerPath};

use super::{AccessScope, Checkpoint};
use crate::Timestamp;

/// Which checkpoints are searched for. Everything that is given must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointSearch {
    /// The tenant's, or also those of others that are public.
    pub scope: AccessScope,
    /// Of one of these tenants.
    pub owners: Option<Vec<TenantId>>,
    /// In one of these projects of the tenant's.
    pub project_ids: Option<Vec<String>>,
    /// With these entries.
    pub user_metadata: BTreeMap<String, String>,
    /// Of this kind.
    pub kind: Option<CheckpointKind>,
    /// Of one of these base models.
    pub base_models: Option<Vec<String>>,
    /// Most checkpoints to return.
    pub limit: u32,
    /// Behind this one, in the order of the results.
    pub after: Option<CheckpointPosition>,
}

/// A place in the order of checkpoints: newest first, then by descending path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPosition {
    /// When the checkpoint was made.
    pub created_at: Timestamp,
    /// The checkpoint.
    pub path: TinkerPath,
}

/// A page of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundCheckpoints {
    /// Newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Where to go on; `None` when there are no more.
    pub next: Option<CheckpointPosition>,
}
