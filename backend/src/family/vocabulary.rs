//! Ops of ranks that have a part of the vocabulary each: rows of the embedding and of the unembedding that follow each
//! other. Their results are combined in the order of ranks. The contracts of `Backend` hold for them.

use std::sync::Arc;

use crate::collective::Ranks;
use crate::targets::{ReferenceRows, Targets};
use crate::tensors::Tensors;
use crate::types::{LinearCall, LogSum, ScoreRequest};

/// Contribution of a part of the vocabulary to `Backend::target_logprobs`.
pub struct HeadPart<B: Tensors> {
    /// Log-sum of the part's logits, for each row.
    pub sums: Vec<LogSum>,
    /// Logits of the targets; -0 for those that are [`Targets::ELSEWHERE`].
    pub logits: Vec<f32>,
    /// State for `Backend::head_backward`, once [`VocabularyOps::set_log_sums`] was called.
    pub state: B::HeadState,
}

/// Contribution of a part of the vocabulary to `Backend::score`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// Log-sum of the part's logits.
    pub sum: LogSum,
    /// Logits of the targets; -0 for those that are [`Targets::ELSEWHERE`].
    pub targets: Vec<f32>,
    /// The largest logits, as many as requested or available, with their tokens counted from the part's first one.
    pub topk: Vec<(u32, f32)>,
}

/// Ops of ranks that share the vocabulary on a backend `B`.
pub trait VocabularyOps<B: Tensors> {
    /// Returns `rows` rows: row `i` of `from` at `at[i]`, which are distinct, and elsewhere -0, which is neutral in
    /// additions.
    fn spread(backend: &B, from: &B::Rows, at: &[usize], rows: usize) -> B::Rows;

    /// Computes `Backend::target_logprobs` over only the first `tokens` rows of the unembedding; targets are counted
    /// from the first row.
    fn head_part(
        backend: &B,
        head: &LinearCall<'_, B>,
        hidden: &B::Rows,
        targets: &Targets,
        tokens: usize,
        save_logits: bool,
    ) -> HeadPart<B>;

    /// Sets the log-sum-exps of all rows to those of the whole vocabulary. `Backend::head_backward` with this state computes
    /// what the part's tokens contribute: with respect to the hidden states, and to A of adapters, a term of the gradient.
    fn set_log_sums(state: &mut B::HeadState, log_sums: Vec<f32>);

    /// Returns what the part contributes to the entropies, in nats, of the distributions of the rows `rows` of
    /// [`VocabularyOps::head_part`] or `Backend::target_logprobs`. `hidden` are these rows, gathered; rows of the segments in
    /// `head` count within these.
    ///
    /// An entropy is the sum over the vocabulary of `p * -ln p`, with `ln p` a logit minus the row's log-sum-exp. It is in f32,
    /// in an order that the part's size decides. Whether `state` has logits or they are recomputed does not change the bits.
    fn entropies(
        backend: &B,
        head: &LinearCall<'_, B>,
        hidden: &B::Rows,
        rows: &[usize],
        state: &B::HeadState,
    ) -> Vec<f32>;

    /// Returns what the part contributes to the Kullback-Leibler divergences, in nats, of the distributions of rows from those of
    /// `reference`. The rows are as in [`VocabularyOps::entropies`], and so are the order of sums and the bits.
    ///
    /// A divergence is the sum over the vocabulary of `p (ln p - ln q)`, with `q` of the reference. A token that the reference
    /// excludes counts with the smallest finite `ln q`.
    fn divergences(
        backend: &B,
        head: &LinearCall<'_, B>,
        hidden: &B::Rows,
        rows: &[usize],
        state: &B::HeadState,
        reference: &ReferenceRows<'_, B>,
    ) -> Vec<f32>;

    /// Writes the logits of all ranks, each with as many columns as `own`, to the first `rows` rows of
    /// `out[_, vocabulary]`; the last ranks' columns may be beyond the vocabulary's end. All ranks call it.
    fn gather_logits(backend: &B, own: &B::Rows, rows: usize, ranks: &Ranks, out: &mut B::Rows);

    /// Returns the contribution of the first `tokens` columns of `logits` to the requested scores, without
    /// alternatives.
    fn score_part(backend: &B, logits: &B::Rows, tokens: usize, requests: &[ScoreRequest]) -> Vec<ScorePart>;
}

/// Rows of `width` elements from the columns that each of `parts` has of them.
pub(crate) fn join_columns(parts: &[Arc<Vec<f32>>], rows: usize, out: &mut [f32], width: usize) {
    for (row, out) in out.chunks_exact_mut(width).take(rows).enumerate() {
        let mut rest = out;
        for part in parts {
            let columns = part.len() / rows;
            let into;
            (into, rest) = rest.split_at_mut(columns.min(rest.len()));
            into.copy_from_slice(&part[row * columns..][..into.len()]);
        }
    }
}
