//! The groups that a rank of a layout belongs to.

use crate::collective::Ranks;
use crate::parallel::Parallel;

/// A rank's groups.
#[derive(Clone, Debug, Default)]
pub(super) struct RankGroups {
    /// Those that make the same calls: all.
    pub(super) all: Ranks,
    /// Those that share the model with it: within a replica.
    pub(super) model: Ranks,
    /// Those with the same part of the model: one of each replica.
    pub(super) replicas: Ranks,
    /// The layout of all.
    pub(super) layout: Parallel,
}

impl RankGroups {
    /// Of one of the ranks of `layout`, which `all` connects.
    pub(super) fn new(all: Ranks, layout: Parallel) -> Self {
        if all.is_single() {
            return Self { all: all.clone(), model: all.clone(), replicas: all, layout };
        }
        let model = all.among(layout.replica_group(all.rank()).collect());
        let replicas = all.among(layout.dp_group(all.rank()));
        Self { all, model, replicas, layout }
    }
}
