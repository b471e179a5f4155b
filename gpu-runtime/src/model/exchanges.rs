//! The collectives that the ranks of a model enter in a pass and at the end of a training request, as
//! [`super::forward`], [`super::backward`], [`super::experts`], [`super::vocabulary`] and [`Shard::reduce_gradients`]
//! call them. Tests compare these lists with the calls that ranks count.

use trainyard_protocol::LoraSpec;

use super::params::ParamSpec;
use super::projection::Projection;
use super::shard::Shard;
use crate::collective::CollectiveKind;
use crate::config::{Block, Experts, Mixer, ModelConfig};

/// Ranks that take part in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// Tensor-parallel ranks of a replica.
    Tensor,
    /// All ranks of a replica: they share experts, of which each holds some, and compute the rest of a block alike or
    /// in parts.
    Replica,
}

/// A collective of f32 elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub members: Members,
    pub kind: CollectiveKind,
    /// Number of elements of a rank's array, as in [`CollectiveKind::sent`].
    pub len: usize,
    /// Number of calls in a pass.
    pub count: usize,
}

impl Exchange {
    /// A sum over tensor parallel ranks.
    fn sum(len: usize) -> Self {
        Self { members: Members::Tensor, kind: CollectiveKind::AllReduce, len, count: 1 }
    }

    /// Rows of a rank's experts, to all: where `ranks` ranks share experts and a row goes to `per_token` of them, each has as many
    /// on average.
    fn gathered(rows: usize, per_token: usize, width: usize, ranks: usize) -> Self {
        let len = (rows * per_token * width).div_ceil(ranks);
        Self { members: Members::Replica, kind: CollectiveKind::AllGather, len, count: 1 }
    }
}

/// The exchange before the first block of a forward pass over `rows` rows: a sum of each rank's part of the embeddings.
pub(crate) fn embedding_exchanges(c: &ModelConfig, rows: usize) -> Vec<Exchange> {
    vec![Exchange::sum(rows * c.hidden_size)]
}

/// Exchanges of the loss head over `rows` rows, each with a target and a gradient: the targets' logits, the terms of
/// the log-sum-exps, and in the backward pass the gradient with respect to the hidden states.
pub(crate) fn loss_exchanges(c: &ModelConfig, rows: usize) -> Vec<Exchange> {
    vec![Exchange::sum(rows), of_vocabulary(2 * rows), Exchange::sum(rows * c.hidden_size)]
}

/// Exchanges for sampling from `rows` rows: the logits of each rank's tokens, at most `at_once` rows at a time.
pub(crate) fn logit_exchanges(c: &ModelConfig, rows: usize, at_once: usize) -> Vec<Exchange> {
    let of = |first: usize| of_vocabulary((rows - first).min(at_once) * c.vocab_rows());
    merged((0..rows).step_by(at_once).map(of))
}

/// An exchange in which each tensor-parallel rank sends all others the values for its part of the vocabulary.
fn of_vocabulary(len: usize) -> Exchange {
    Exchange { kind: CollectiveKind::AllGather, ..Exchange::sum(len) }
}

/// Exchanges of a forward pass over `rows` rows through some blocks of `c`, a rank's part: a sum after attention and
/// one after the MLP, or with experts their outputs. `ranks` share the experts.
pub(crate) fn forward_exchanges<'b>(
    c: &ModelConfig,
    rows: usize,
    ranks: usize,
    blocks: impl Iterator<Item = &'b Block>,
) -> Vec<Exchange> {
    let sum = Exchange::sum(rows * c.hidden_size);
    let of = |block: &Block| {
        let mixer = block.mixer.as_ref().map(|_| sum);
        let mlp = match &block.experts {
            None => block.has_mlp.then_some(sum).into_iter().collect::<Vec<_>>(),
            Some(experts) => {
                let beside = experts.shared.map(|_| sum);
                let outputs = Exchange::gathered(rows, experts.rule.per_token, experts.inputs(c.hidden_size), ranks);
                [outputs].into_iter().chain(beside).collect()
            }
        };
        mixer.into_iter().chain(mlp).collect::<Vec<_>>()
    };
    merged(blocks.flat_map(of))
}

/// Exchanges of the backward pass over the same rows, which recomputes the first `recomputed` blocks: sums of the
/// gradients with respect to values that all ranks compute alike and that they multiply with their parts of the model.
pub(crate) fn backward_exchanges(
    c: &ModelConfig,
    rows: usize,
    ranks: usize,
    recomputed: usize,
    lora: Option<&LoraSpec>,
) -> Vec<Exchange> {
    let sum = |width: usize| Exchange::sum(rows * width);
    let attention = match c.latent {
        None => vec![sum(c.hidden_size)],
        // The rotated part of keys, and the normalised latents; queries without a latent read the block's input.
        Some(latent) => [latent.rope_dim, latent.kv_rank, latent.query_rank.unwrap_or(c.hidden_size)].map(sum).into(),
    };
    let of = |block: &Block| {
        let mlp = match &block.experts {
            None => block.has_mlp.then_some(sum(c.hidden_size)).into_iter().collect(),
            Some(experts) => experts_backward(c, block, experts, rows, ranks, lora),
        };
        let mixer = match &block.mixer {
            None => Vec::new(),
            Some(Mixer::Attention(_)) => attention.clone(),
            Some(Mixer::Recurrent(_) | Mixer::Convolution(_)) => vec![sum(c.hidden_size)],
        };
        mlp.into_iter().chain(mixer).collect::<Vec<_>>()
    };
    let again = forward_exchanges(c, rows, ranks, c.blocks.iter().take(recomputed));
    merged(c.blocks.iter().flat_map(of).chain(again))
}

/// Gradients of a row's weights, of experts' inputs, and low-rank rows for the adapter matrices that experts have in common.
fn experts_backward(
    c: &ModelConfig,
    block: &Block,
    experts: &Experts,
    rows: usize,
    ranks: usize,
    lora: Option<&LoraSpec>,
) -> Vec<Exchange> {
    let chosen = experts.rule.per_token;
    let weights = Exchange { members: Members::Replica, ..Exchange::sum(rows * chosen) };
    let mut all = vec![weights, Exchange::gathered(rows, chosen, experts.inputs(c.hidden_size), ranks)];
    let adapted = [Projection::inner(block), &[Projection::Down]].concat();
    let on = lora.iter().flat_map(|lora| adapted.iter().filter(|_| lora.train_mlp).map(|_| lora.rank as usize));
    all.extend(on.map(|rank| Exchange::gathered(rows, chosen, rank, ranks)));
    all.extend(experts.shared.map(|_| Exchange::sum(rows * c.hidden_size)));
    all
}

/// Exchanges at the end of a request, for the gradients of `own` that several ranks have parts of. `tensor` is the
/// number of tensor-parallel ranks.
pub(crate) fn gradient_exchanges(shard: &Shard, tensor: usize, own: &[ParamSpec]) -> Vec<Exchange> {
    let of = |spec: &ParamSpec| {
        let group = shard.gradient_ranks(spec)?;
        // Sums within a part of the ranks are made of what all have.
        let kind = if group.len() == tensor { CollectiveKind::AllReduce } else { CollectiveKind::AllGather };
        Some(Exchange { kind, ..Exchange::sum(spec.len()) })
    };
    // For the norm, a sum of squares in 64 bits.
    let norm = Exchange {
        members: Members::Replica,
        kind: CollectiveKind::AllGather,
        ..Exchange::sum(size_of::<f64>() / size_of::<f32>())
    };
    merged(own.iter().filter_map(of).chain([norm]))
}

/// Equal ones counted together.
fn merged(all: impl Iterator<Item = Exchange>) -> Vec<Exchange> {
    let mut found: Vec<Exchange> = Vec::new();
    for exchange in all {
        let same = found.iter_mut().find(|other| Exchange { count: 1, ..**other } == Exchange { count: 1, ..exchange });
        match same {
            Some(same) => same.count += exchange.count,
            None => found.push(exchange),
        }
    }
    found
}
