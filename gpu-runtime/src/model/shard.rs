//! Tensor parallelism (Shoeybi et al. 2019, arXiv:1909.08053): which part of a model a rank holds.
//!
//! Ranks share heads and the MLP's width. q, k, v, gate and up keep some of their outputs, o and down some of their inputs, so
//! that a block needs an all-reduce after o and one after down, and its backward pass one before each of them. An adapter's A
//! follows the inputs of its projection, its B the outputs; the other one is on every rank. Norms, embedding and unembedding
//! are on every rank.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::params::ParamSpec;
use super::shard_axis::ShardAxis;
use crate::backend::Params;
use crate::collective::Ranks;
use crate::config::{LoadError, ModelConfig, TensorSource};
use crate::parallel::LayoutError;

/// A rank's part of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    rank: usize,
    world: usize,
    /// Key and value heads of the whole model.
    kv_heads: usize,
}

impl Shard {
    /// The part of rank `rank` of `world`, and its configuration: of heads and the MLP's width what the rank holds.
    ///
    /// # Errors
    /// When so many ranks cannot share the model.
    pub(crate) fn of(c: &ModelConfig, (rank, world): (usize, usize)) -> Result<(Self, ModelConfig), LayoutError> {
        if world > 1 && c.has_experts() {
            return Err(LayoutError::Experts { ranks: world });
        }
        let part = |what, extent: usize| match extent % world {
            0 => Ok(extent / world),
            _ => Err(LayoutError::Extent { ranks: world, what, extent }),
        };
        // A key head with fewer than one rank's worth of queries is on several ranks.
        let kv_heads = match world % c.num_kv_heads {
            0 => 1,
            _ => part("num_key_value_heads", c.num_kv_heads)?,
        };
        let own = ModelConfig {
            num_heads: part("num_attention_heads", c.num_heads)?,
            num_kv_heads: kv_heads,
            intermediate_size: part("intermediate_size", c.intermediate_size)?,
            ..c.clone()
        };
        Ok((Self { rank, world, kv_heads: c.num_kv_heads }, own))
    }

    /// This rank's part of a parameter, whose extents here are those of `own`, from all its elements.
    pub(crate) fn slice<'v>(&self, own: &ParamSpec, all: Cow<'v, [f32]>) -> Cow<'v, [f32]> {
        if all.len() == own.len() {
            return all;
        }
        let columns: usize = own.shape[1..].iter().product();
        match own.shard {
            ShardAxis::Replicated | ShardAxis::Expert(_) | ShardAxis::Experts => all,
            ShardAxis::Outputs | ShardAxis::KvHeads => {
                let start = self.part(own.shard) * own.len();
                match all {
                    Cow::Borrowed(all) => Cow::Borrowed(&all[start..][..own.len()]),
                    Cow::Owned(all) => Cow::Owned(all[start..][..own.len()].to_vec()),
                }
            }
            ShardAxis::Inputs => {
                let (width, start) = (all.len() / own.shape[0], self.rank * columns);
                all.chunks_exact(width).flat_map(|row| &row[start..start + columns]).copied().collect()
            }
        }
    }

    /// This rank's part of a parameter from a checkpoint, of which no more is read than that if it is contiguous.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(&self, own: &ParamSpec, tensors: &dyn TensorSource) -> Result<Vec<f32>, LoadError> {
        let whole = tensors.shape(&own.name).map_or(0, |shape| shape.iter().product());
        match own.shard {
            ShardAxis::Outputs | ShardAxis::KvHeads if own.len() < whole => {
                let start = self.part(own.shard) * own.len();
                tensors.read_part(&own.name, start..start + own.len())
            }
            _ => tensors.read(&own.name).map(|all| self.slice(own, Cow::Owned(all)).into_owned()),
        }
    }

    /// Which of the equal parts along an axis this rank has.
    fn part(&self, axis: ShardAxis) -> usize {
        if axis == ShardAxis::KvHeads { self.rank / self.sharing() } else { self.rank }
    }

    /// Ranks that have the same key head.
    fn sharing(&self) -> usize {
        (self.world / self.kv_heads).max(1)
    }

    /// The ranks whose gradients of a parameter add up to its gradient, where there are others than this one.
    fn gradient_ranks(&self, own: &ParamSpec) -> Option<Range<usize>> {
        let ranks = match own.shard {
            _ if own.is_partial => 0..self.world,
            ShardAxis::KvHeads => {
                let first = self.rank - self.rank % self.sharing();
                first..first + self.sharing()
            }
            _ => return None,
        };
        (ranks.len() > 1).then_some(ranks)
    }

    /// Whether this rank is the one that counts its elements of a parameter in a sum over all elements of the model.
    pub(crate) fn counts(&self, own: &ParamSpec) -> bool {
        match own.shard {
            ShardAxis::Replicated | ShardAxis::Expert(_) | ShardAxis::Experts => self.rank == 0,
            ShardAxis::Outputs | ShardAxis::Inputs => true,
            ShardAxis::KvHeads => self.rank.is_multiple_of(self.sharing()),
        }
    }

    /// On rank 0 all elements of a parameter, of which every rank passes its part; all ranks call it. `None` on the others,
    /// and after a failure.
    pub(crate) fn gather(&self, ranks: &Ranks, own: &ParamSpec, part: Cow<'_, [f32]>) -> Option<Vec<f32>> {
        if own.shard == ShardAxis::Replicated || ranks.is_single() {
            return (self.rank == 0).then(|| part.into_owned());
        }
        let parts = ranks.gather(part.into_owned())?;
        Some(self.join(own, &parts))
    }

    /// A parameter from the parts of all ranks: the inverse of [`Shard::slice`].
    fn join(&self, own: &ParamSpec, parts: &[Arc<Vec<f32>>]) -> Vec<f32> {
        match own.shard {
            ShardAxis::Replicated | ShardAxis::Expert(_) | ShardAxis::Experts => {
                parts.first().map(|part| part.to_vec()).unwrap_or_default()
            }
            ShardAxis::Outputs => parts.iter().flat_map(|part| part.iter().copied()).collect(),
            ShardAxis::KvHeads => parts.iter().step_by(self.sharing()).flat_map(|part| part.iter().copied()).collect(),
            ShardAxis::Inputs => {
                let columns: usize = own.shape[1..].iter().product();
                let row = |row: usize| parts.iter().flat_map(move |part| &part[row * columns..][..columns]);
                (0..own.shape[0]).flat_map(row).copied().collect()
            }
        }
    }

    /// Adds up the gradients that ranks have parts of, `grads` of the parameters `own`.
    pub(crate) fn reduce_gradients<P: Params>(&self, ranks: &Ranks, own: &[ParamSpec], grads: &mut P) {
        for (index, spec) in own.iter().enumerate() {
            if let Some(group) = self.gradient_ranks(spec) {
                grads.reduce(index, ranks, group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::load::load;
    use crate::model::ParamTable;

    #[test]
    fn parts_of_all_ranks_make_the_whole() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/qwen2");
        let config = load(&path).unwrap().config;
        let table = ParamTable::new(&config);
        for world in [1, 2, 4] {
            let ranks: Vec<_> = (0..world).map(|rank| Shard::of(&config, (rank, world)).unwrap()).collect();
            let tables: Vec<_> = ranks.iter().map(|(_, own)| ParamTable::new(own)).collect();
            let mut counted = 0;
            for (index, spec) in table.specs.iter().enumerate() {
                let whole: Vec<f32> = (0..spec.len()).map(|i| i as f32).collect();
                let part = |rank: usize| ranks[rank].0.slice(&tables[rank].specs[index], Cow::Borrowed(&whole));
                let parts: Vec<_> = (0..world).map(|rank| Arc::new(part(rank).into_owned())).collect();
                assert_eq!(ranks[0].0.join(&tables[0].specs[index], &parts), whole, "{} of {world}", spec.name);
                let counts = |rank: &usize| ranks[*rank].0.counts(&tables[*rank].specs[index]);
                counted += (0..world).filter(counts).map(|rank| parts[rank].len()).sum::<usize>();
            }
            assert_eq!(counted, table.elements(), "each element is counted once");
        }
    }
}
