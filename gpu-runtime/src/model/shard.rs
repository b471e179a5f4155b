//! Tensor parallelism (Shoeybi et al. 2019, arXiv:1909.08053) and expert parallelism (Lepikhin et al. 2020, arXiv:2006.16668):
//! which part of a model a rank holds.
//!
//! Tensor parallel ranks share heads and the MLP's width. q, k, v, gate and up keep some of their outputs, o and down some of their inputs, so
//! that a block needs an all-reduce after o and one after down, and its backward pass one before each of them. An adapter's A
//! follows the inputs of its projection, its B the outputs; the other one is on every rank. They also share the rows of embedding
//! and unembedding ([`super::vocabulary`]). Norms are on every rank.
//!
//! Experts are shared by all ranks, tensor parallel ones and the expert parallel copies of these: each has as many whole experts,
//! which follow each other, in the order of ranks. Tensor parallel ranks follow each other. Routers are on every rank.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::params::ParamSpec;
use super::shard_axis::ShardAxis;
use crate::backend::Params;
use crate::collective::Ranks;
use crate::config::{HeadNorms, LoadError, Mixer, ModelConfig, TensorSource, VocabularyPart};
use crate::parallel::{LayoutError, Parallel};
use crate::runs::Runs;

/// A rank's part of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Rank among all ranks of the model.
    rank: usize,
    /// Number of ranks that share a layer's heads and the width of its MLP.
    tensor: usize,
    /// Key and value heads of the whole model.
    kv_heads: usize,
    /// Tokens of its vocabulary.
    vocab: usize,
}

impl Shard {
    /// The part of rank `rank` of a replica, and a configuration with the heads, the MLP's width and the experts that
    /// the rank holds.
    ///
    /// # Errors
    /// If this number of ranks cannot share the model.
    pub(crate) fn of(c: &ModelConfig, rank: usize, layout: Parallel) -> Result<(Self, ModelConfig), LayoutError> {
        let (tensor, ranks) = (layout.tp(), layout.replica());
        if layout.ep() > 1 && !c.has_experts() {
            return Err(LayoutError::NoExperts { ranks: layout.ep() });
        }
        let part = |what, extent: usize| match extent % tensor {
            0 => Ok(extent / tensor),
            _ => Err(LayoutError::Extent { ranks: tensor, what, extent }),
        };
        // A key head with fewer than one rank's worth of queries is on several ranks.
        let kv_heads = match tensor % c.num_kv_heads {
            0 => 1,
            _ => part("num_key_value_heads", c.num_kv_heads)?,
        };
        let num_heads = part("num_attention_heads", c.num_heads)?;
        // Where all blocks have experts, nothing has this width.
        let is_dense = c.blocks.iter().any(|block| block.has_mlp && block.experts.is_none());
        let intermediate_size =
            if is_dense { part("intermediate_size", c.intermediate_size)? } else { c.intermediate_size };
        let mut blocks = c.blocks.clone();
        for block in &mut blocks {
            match &mut block.mixer {
                Some(Mixer::Attention(attention)) if attention.head_norms == HeadNorms::Projections && tensor > 1 => {
                    return Err(LayoutError::Extent { ranks: tensor, what: "q and k norms over all heads", extent: 1 });
                }
                Some(Mixer::Recurrent(_)) if block.joins_inputs && tensor > 1 => {
                    let what = "the number of modules of a recurrence's inputs";
                    return Err(LayoutError::Extent { ranks: tensor, what, extent: 1 });
                }
                Some(Mixer::Recurrent(shape)) => {
                    shape.key_heads = part("key heads of a recurrence", shape.key_heads)?;
                    shape.value_heads = part("value heads of a recurrence", shape.value_heads)?;
                }
                Some(Mixer::Convolution(shape)) => {
                    shape.channels = part("channels of a convolution", shape.channels)?;
                }
                Some(Mixer::Attention(_)) | None => {}
            }
        }
        for experts in blocks.iter_mut().filter_map(|block| block.experts.as_mut()) {
            if !experts.count.is_multiple_of(ranks) {
                return Err(LayoutError::Experts { layout, ranks, experts: experts.count });
            }
            let each = experts.count / ranks;
            experts.held = rank * each..(rank + 1) * each;
            experts.shared = experts.shared.map(|width| part("the width of shared experts", width)).transpose()?;
        }
        let vocab_part = VocabularyPart { index: rank % tensor, of: tensor };
        let own = ModelConfig { num_heads, num_kv_heads: kv_heads, intermediate_size, vocab_part, blocks, ..c.clone() };
        Ok((Self { rank, tensor, kv_heads: c.num_kv_heads, vocab: c.vocab_size }, own))
    }

    /// Number of this rank among the tensor-parallel ranks.
    fn tensor_rank(&self) -> usize {
        self.rank % self.tensor
    }

    /// This rank's part of a parameter, with the extents of `own`, among all `len` elements of it.
    pub(crate) fn runs(&self, own: &ParamSpec, len: usize) -> Runs {
        let (held, rank) = (own.len(), self.tensor_rank());
        if held == len {
            return Runs::one(0..len);
        }
        match own.shard {
            ShardAxis::Replicated => Runs::one(0..len),
            ShardAxis::Outputs | ShardAxis::KvHeads | ShardAxis::Expert | ShardAxis::Experts => {
                let start = self.part(own.shard) * held;
                Runs::one(start..start + held)
            }
            ShardAxis::Vocabulary => {
                let start = (rank * held).min(len);
                Runs::one(start..(start + held).min(len))
            }
            ShardAxis::StackedOutputs(count) => {
                let held = held / count;
                Runs { first: rank * held, len: held, stride: len / count, count }
            }
            ShardAxis::Inputs => {
                let (columns, rows) = (own.shape[1..].iter().product(), own.shape[0]);
                Runs { first: rank * columns, len: columns, stride: len / rows, count: rows }
            }
        }
    }

    /// This rank's part of a parameter, with the extents of `own`, from all its elements.
    pub(crate) fn slice<'v>(&self, own: &ParamSpec, all: Cow<'v, [f32]>) -> Cow<'v, [f32]> {
        if all.len() == own.len() {
            return all;
        }
        let runs = self.runs(own, all.len());
        match all {
            _ if own.shard == ShardAxis::Replicated => all,
            Cow::Borrowed(all) if runs.is_joined() && runs.elements() == own.len() => Cow::Borrowed(&all[runs.span()]),
            all => Cow::Owned(padded(runs.of_span(&all[runs.span()]), own)),
        }
    }

    /// Reads this rank's part of a parameter from a checkpoint, and nothing else of it where the source can read runs apart.
    ///
    /// # Errors
    /// If the parameter cannot be read.
    pub(crate) fn read(&self, own: &ParamSpec, tensors: &dyn TensorSource) -> Result<Vec<f32>, LoadError> {
        let whole = tensors.shape(&own.name).map_or(0, |shape| shape.iter().product());
        match own.len() {
            held if held >= whole || own.shard == ShardAxis::Replicated => {
                tensors.read(&own.name).map(|all| self.slice(own, Cow::Owned(all)).into_owned())
            }
            0 => Ok(Vec::new()),
            _ => tensors.read_runs(&own.name, self.runs(own, whole)).map(|held| padded(held, own)),
        }
    }

    /// Index of this rank's part among the equal parts along an axis.
    fn part(&self, axis: ShardAxis) -> usize {
        match axis {
            ShardAxis::KvHeads => self.tensor_rank() / self.sharing(),
            ShardAxis::Experts => self.rank,
            _ => self.tensor_rank(),
        }
    }

    /// Ranks that have the same key head.
    fn sharing(&self) -> usize {
        (self.tensor / self.kv_heads).max(1)
    }

    /// The tensor parallel ranks whose gradients of a parameter add up to its gradient, where there are others than this one.
    pub(super) fn gradient_ranks(&self, own: &ParamSpec) -> Option<Range<usize>> {
        let ranks = match own.shard {
            _ if own.is_partial => 0..self.tensor,
            ShardAxis::KvHeads => {
                let first = self.tensor_rank() - self.tensor_rank() % self.sharing();
                first..first + self.sharing()
            }
            _ => return None,
        };
        (ranks.len() > 1).then_some(ranks)
    }

    /// Whether this rank is the one that counts its elements of a parameter in a sum over all elements of the model.
    pub(crate) fn counts(&self, own: &ParamSpec) -> bool {
        match own.shard {
            ShardAxis::Replicated => self.rank == 0,
            ShardAxis::Expert | ShardAxis::Experts => true,
            ShardAxis::Outputs | ShardAxis::StackedOutputs(_) | ShardAxis::Inputs | ShardAxis::Vocabulary => {
                self.is_first_copy()
            }
            ShardAxis::KvHeads => self.is_first_copy() && self.rank.is_multiple_of(self.sharing()),
        }
    }

    /// Whether it is of the first tensor parallel ranks: those after them have the same but for experts.
    fn is_first_copy(&self) -> bool {
        self.rank < self.tensor
    }

    /// Gathers all elements of a parameter on rank 0. Every rank passes its part; all ranks call it. `None` on the
    /// other ranks, and after a failure.
    pub(crate) fn gather(&self, ranks: &Ranks, own: &ParamSpec, part: Cow<'_, [f32]>) -> Option<Vec<f32>> {
        if own.shard == ShardAxis::Replicated || ranks.is_single() {
            return (self.rank == 0).then(|| part.into_owned());
        }
        let is_needed = self.is_first_copy() || matches!(own.shard, ShardAxis::Expert | ShardAxis::Experts);
        let parts = ranks.gather(if is_needed { part.into_owned() } else { Vec::new() })?;
        Some(self.join(own, &parts))
    }

    /// A parameter from the parts of all ranks: the inverse of [`Shard::slice`].
    fn join(&self, own: &ParamSpec, parts: &[Arc<Vec<f32>>]) -> Vec<f32> {
        let all = |parts: &[Arc<Vec<f32>>]| parts.iter().flat_map(|part| part.iter().copied()).collect();
        let (whole, parts) = (parts, &parts[..parts.len().min(self.tensor)]);
        match own.shard {
            ShardAxis::Replicated => parts.first().map(|part| part.to_vec()).unwrap_or_default(),
            ShardAxis::Expert | ShardAxis::Experts => all(whole),
            ShardAxis::Outputs => all(parts),
            ShardAxis::StackedOutputs(_) => {
                let (stacked, held) = (stacked_parts(own), own.len() / stacked_parts(own));
                let of = |at: usize| parts.iter().flat_map(move |part| &part[at * held..(at + 1) * held]);
                (0..stacked).flat_map(of).copied().collect()
            }
            ShardAxis::Vocabulary => {
                let columns: usize = own.shape[1..].iter().product();
                parts.iter().flat_map(|part| part.iter().copied()).take(self.vocab * columns).collect()
            }
            ShardAxis::KvHeads => parts.iter().step_by(self.sharing()).flat_map(|part| part.iter().copied()).collect(),
            ShardAxis::Inputs => {
                let columns: usize = own.shape[1..].iter().product();
                let row = |row: usize| parts.iter().flat_map(move |part| &part[row * columns..][..columns]);
                (0..own.shape[0]).flat_map(row).copied().collect()
            }
        }
    }

    /// Adds up the gradients that tensor parallel ranks, `ranks`, have parts of: `grads` of the parameters `own`.
    pub(crate) fn reduce_gradients<P: Params>(&self, ranks: &Ranks, own: &[ParamSpec], grads: &mut P) {
        for (index, spec) in own.iter().enumerate() {
            if let Some(group) = self.gradient_ranks(spec) {
                grads.reduce(index, ranks, group);
            }
        }
    }
}

/// Equal parts that are stacked along the outputs of a parameter.
fn stacked_parts(own: &ParamSpec) -> usize {
    if let ShardAxis::StackedOutputs(parts) = own.shard { parts } else { 1 }
}

/// The elements of the tokens that a rank has, with zeros for the rest of its rows.
fn padded(mut held: Vec<f32>, own: &ParamSpec) -> Vec<f32> {
    held.reserve_exact(own.len().saturating_sub(held.len()));
    held.resize(own.len(), 0.0);
    held
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::LoraSpec;

    use super::*;
    use crate::load::load;
    use crate::model::ParamTable;

    fn config_of(family: &str) -> ModelConfig {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family);
        load(&path).unwrap().config
    }

    fn parts_make_the_whole(family: &str, layouts: &[&str], lora: Option<&LoraSpec>) {
        parts_of_config_make_the_whole(&config_of(family), layouts, lora);
    }

    fn parts_of_config_make_the_whole(config: &ModelConfig, layouts: &[&str], lora: Option<&LoraSpec>) {
        let specs = ParamTable::new(config).trained(config, lora);
        for layout in layouts {
            let parallel: Parallel = layout.parse().unwrap();
            let world = parallel.replica();
            let ranks: Vec<_> = (0..world).map(|rank| Shard::of(config, rank, parallel).unwrap()).collect();
            let own: Vec<_> = ranks.iter().map(|(_, own)| ParamTable::new(own).trained(own, lora)).collect();
            let (mut counted, mut elements) = (0, 0);
            for (index, spec) in specs.iter().enumerate() {
                let whole: Vec<f32> = (0..spec.len()).map(|i| i as f32).collect();
                let part = |rank: usize| ranks[rank].0.slice(&own[rank][index], Cow::Borrowed(&whole));
                let parts: Vec<_> = (0..world).map(|rank| Arc::new(part(rank).into_owned())).collect();
                for (part, own) in parts.iter().zip(&own) {
                    assert_eq!(part.len(), own[index].len(), "{} of {layout}", spec.name);
                }
                assert_eq!(ranks[0].0.join(&own[0][index], &parts), whole, "{} of {layout}", spec.name);
                let counts = |rank: &usize| ranks[*rank].0.counts(&own[*rank][index]);
                counted += (0..world).filter(counts).map(|rank| parts[rank].len()).sum::<usize>();
                elements += spec.len();
            }
            assert_eq!(counted, elements, "each element is counted once");
        }
    }

    #[test]
    fn parts_of_all_ranks_make_the_whole() {
        let lora = LoraSpec { latent_up: true, ..LoraSpec::on_all(3, 1) };
        for lora in [None, Some(&lora)] {
            parts_make_the_whole("qwen2", &["tp=1", "tp=2", "tp=4"], lora);
            parts_make_the_whole("lfm2", &["tp=1", "tp=2", "tp=4"], lora);
            // Gate and up in one module, which ranks share where no block has a recurrence.
            let mut joined = config_of("granitemoehybrid");
            let attention = joined.blocks[1].mixer.clone();
            joined.blocks.iter_mut().for_each(|block| block.mixer.clone_from(&attention));
            parts_of_config_make_the_whole(&joined, &["tp=1", "tp=2", "tp=4"], lora);
            for family in ["qwen3_moe", "gpt_oss", "deepseek_v3"] {
                parts_make_the_whole(family, &["tp=1", "tp=2", "tp=4", "ep=2", "ep=4", "tp=2,ep=2"], lora);
            }
        }
    }

    #[test]
    fn ranks_have_whole_experts_in_order() {
        let config = config_of("deepseek_v3");
        let layout: Parallel = "tp=2,ep=2".parse().unwrap();
        for rank in 0..4 {
            let (_, own) = Shard::of(&config, rank, layout).unwrap();
            let experts = own.blocks[1].experts.as_ref().unwrap();
            assert_eq!((experts.count, experts.held.clone()), (8, 2 * rank..2 * rank + 2));
            assert_eq!((experts.width, experts.shared), (32, Some(16)), "only shared experts divide their width");
            assert_eq!((own.num_heads, own.intermediate_size), (2, 80));
            assert_eq!(layout.tensor_group(rank), rank / 2 * 2..rank / 2 * 2 + 2);
            assert_eq!((0..8).map(|expert| experts.holder(expert)).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2, 3, 3]);
            let table = ParamTable::new(&own);
            let of_experts = table.specs.iter().filter(|spec| spec.shard == ShardAxis::Expert && spec.len() > 0);
            assert!(of_experts.clone().all(|spec| {
                let (_, rest) = spec.name.split_once(".experts.").unwrap();
                experts.held.contains(&rest.split('.').next().unwrap().parse().unwrap())
            }));
            assert_eq!(of_experts.count(), 2 * 3);
        }
    }
}
