//! The groups of ranks that a rank of a layout belongs to.

use crate::backend::{Backend, FamilyOps};
use crate::collective::Ranks;
use crate::config::LoadError;
use crate::parallel::Parallel;

/// Groups that a rank belongs to.
#[derive(Clone, Debug, Default)]
pub(super) struct RankGroups {
    /// All ranks, which make the same calls.
    pub(super) all: Ranks,
    /// Ranks that share the model with this one: its replica.
    pub(super) model: Ranks,
    /// Ranks of the replica that share each layer's heads and the width of its MLP.
    pub(super) tensor: Ranks,
    /// Ranks with the same part of the model: one of each replica.
    pub(super) replicas: Ranks,
    /// The layout of all ranks.
    pub(super) layout: Parallel,
}

impl RankGroups {
    /// The groups of one rank of `layout`; `all` connects the ranks.
    pub(super) fn new(all: Ranks, layout: Parallel) -> Self {
        if all.is_single() {
            return Self { all: all.clone(), model: all.clone(), tensor: all.clone(), replicas: all, layout };
        }
        let model = all.among(layout.replica_group(all.rank()).collect());
        let tensor = model.among(layout.tensor_group(model.rank()).collect());
        let replicas = all.among(layout.dp_group(all.rank()));
        Self { all, model, tensor, replicas, layout }
    }

    /// The same groups with the backend's transport for exchanges in passes.
    ///
    /// # Errors
    /// If a rank lacks something that the transport needs.
    pub(super) fn connected<B: Backend>(self, backend: &B) -> Result<Self, LoadError> {
        let rank = self.all.rank();
        let connect = |ranks| B::Family::connect(backend, ranks).map_err(|reason| LoadError::Rank { rank, reason });
        let model = connect(self.model)?;
        // Most layouts have no other tensor parallel ranks than those of the model.
        let tensor = if self.tensor.world() == model.world() { model.clone() } else { connect(self.tensor)? };
        let replicas = connect(self.replicas)?;
        Ok(Self { model, tensor, replicas, ..self })
    }
}
