//! Ops that only some families, layouts or runs need: mixture of experts, attention sinks, heads with one output, and parts of a
//! vocabulary. The contracts of
//! [`Backend`] hold for them.

use std::ops::Range;

use super::{Backend, Rows, Tensors};
use crate::collective::Ranks;
pub use convolution::{ConvolutionCall, ConvolutionOps};
pub use gated::GateOps;
pub(crate) use indexer::choose_best;
pub use indexer::{Chosen, IndexCall, IndexKeys, IndexRotation, IndexerOps};
pub use latent::{LatentHeads, LatentOps, LatentRotation};
pub use mixer_shapes::{CHUNK, ConvolutionShape, InputColumns, RecurrentRule, RecurrentShape, StateShape};
pub use recurrent::{RecurrentCall, RecurrentOps, RecurrentParams};
pub use scale::ScaleOps;

pub use state::StateOps;
pub use vision::{Gelu, LayerNorm, RowMix, VisionOps};
pub(crate) use vocabulary::join_columns;
pub use vocabulary::{HeadPart, ScorePart, VocabularyOps};

mod convolution;
mod gated;
mod indexer;
mod latent;
mod mixer_shapes;
mod recurrent;
mod scale;
mod state;
mod vision;
mod vocabulary;

/// How the experts of a token and their weights follow from a router's logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouterRule {
    /// Number of experts of a token: those with the largest scores; among equal scores, the first. NaN counts as -inf.
    pub per_token: usize,
    /// Whether weights are divided by the sum of the chosen experts' scores, so that they add up to one (before
    /// scaling).
    pub normalised: bool,
    /// Function that turns logits into scores.
    pub scores: RouterScores,
}

/// Functions from a router's logits to scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RouterScores {
    /// The softmax: over the chosen experts' logits if weights are normalised, else over all.
    Softmax,
    /// The sigmoid, as in DeepSeek-V3 (DeepSeek-AI 2024, arXiv:2412.19437). Each expert has a correction that is added
    /// only for the choice, and experts are chosen only from some groups.
    Sigmoid {
        /// Groups of experts that follow each other; divides their number.
        groups: usize,
        /// Groups that are chosen from: those with the largest sums of their two best corrected scores, of equal ones the
        /// first.
        chosen_groups: usize,
        /// Factor of the weights.
        scaling: f32,
    },
}

impl RouterRule {
    /// Added to the sum of sigmoids that weights are divided by.
    pub const EPS: f32 = 1e-20;

    /// Returns the rule of families whose scores are the softmax.
    pub fn softmax(per_token: usize, normalised: bool) -> Self {
        Self { per_token, normalised, scores: RouterScores::Softmax }
    }
}

/// An expert with the rows that are routed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertRows {
    /// Index of the expert.
    pub expert: usize,
    /// Rows of the batch, in order.
    pub rows: Vec<usize>,
    /// Index of the expert among the row's experts, for each of `rows`.
    pub slots: Vec<usize>,
}

impl ExpertRows {
    /// Returns the indices in [`ExpertRows::rows`] of the batch's `rows`.
    pub fn within(&self, rows: &Range<usize>) -> Range<usize> {
        let before = |row: usize| self.rows.partition_point(|own| *own < row);
        before(rows.start)..before(rows.end)
    }
}

/// Assignment of a batch's rows to experts. A row's experts are in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    per_token: usize,
    /// Experts that there are.
    count: usize,
    /// Experts of each row: `[rows][per_token]`.
    experts: Vec<usize>,
    /// Experts that rows go to, ascending.
    parts: Vec<ExpertRows>,
    /// `[rows][per_token]`: index of the part, and of the row in it.
    places: Vec<(usize, usize)>,
}

impl Dispatch {
    /// Groups rows by expert. `experts` are those of every row, `[rows][per_token]`, ascending in each row; `count` is
    /// the number of experts.
    pub fn new(experts: Vec<usize>, per_token: usize, count: usize) -> Self {
        let mut order: Vec<usize> = (0..experts.len()).collect();
        order.sort_by_key(|at| experts[*at]);
        let mut parts: Vec<ExpertRows> = Vec::new();
        let mut places = vec![(0, 0); experts.len()];
        for at in order {
            let expert = experts[at];
            if parts.last().is_none_or(|part| part.expert != expert) {
                parts.push(ExpertRows { expert, rows: Vec::new(), slots: Vec::new() });
            }
            let index = parts.len() - 1;
            if let Some(part) = parts.last_mut() {
                places[at] = (index, part.rows.len());
                part.rows.push(at / per_token);
                part.slots.push(at % per_token);
            }
        }
        Self { per_token, count, experts, parts, places }
    }

    /// Returns the numbers of rows, of experts of a row, and of experts.
    pub fn extents(&self) -> [usize; 3] {
        [self.experts.len().checked_div(self.per_token).unwrap_or(0), self.per_token, self.count]
    }

    /// Returns the experts that rows go to, in ascending order.
    pub fn parts(&self) -> &[ExpertRows] {
        &self.parts
    }

    /// Returns the experts of a row, in ascending order.
    pub fn experts(&self, row: usize) -> &[usize] {
        &self.experts[row * self.per_token..(row + 1) * self.per_token]
    }

    /// Returns, for each expert of a row, the index of the part and of the row in it.
    pub fn places(&self, row: usize) -> &[(usize, usize)] {
        &self.places[row * self.per_token..(row + 1) * self.per_token]
    }

    /// Returns the dispatch of only some rows of the batch.
    pub fn of_rows(&self, rows: &Range<usize>) -> Self {
        Self::new(
            self.experts[rows.start * self.per_token..rows.end * self.per_token].to_vec(),
            self.per_token,
            self.count,
        )
    }

    /// Returns how many of some rows each expert gets.
    pub fn counts(&self, rows: &Range<usize>) -> Vec<u32> {
        let mut counts = vec![0; self.count];
        for expert in &self.experts[rows.start * self.per_token..rows.end * self.per_token] {
            counts[*expert] += 1;
        }
        counts
    }
}

/// A head with one output: parameters `weight`, `[hidden]` elements, and `weight + 1`, the bias.
pub struct ScalarHead<'a, B: Tensors> {
    /// Parameters that contain the weight and the bias.
    pub params: &'a B::Params,
    /// Index of the weight.
    pub weight: usize,
}

impl<B: Tensors> Clone for ScalarHead<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Tensors> Copy for ScalarHead<'_, B> {}

/// Ops of mixtures of experts, of attention sinks and of scalar heads on a backend `B`.
pub trait FamilyOps<B: Backend>:
    LatentOps<B>
    + IndexerOps<B>
    + VocabularyOps<B>
    + GateOps<B>
    + RecurrentOps<B>
    + ConvolutionOps<B>
    + ScaleOps<B>
    + VisionOps<B>
{
    /// Chooses the experts of every row from the router's `logits`, `[rows, experts]`, with a `correction` for each expert where
    /// the rule has one. Returns them with their weights, `[rows, per_token]`, in the order of [`Dispatch::experts`]. Sums of a
    /// row's scores run in that order, or over all experts in an order that their number decides.
    fn route(backend: &B, rule: RouterRule, correction: &[f32], logits: &B::Rows) -> (Dispatch, B::Rows);

    /// Returns the gradient with respect to the logits, `[rows, experts]`, given that with respect to the weights. The
    /// choice itself has no gradient.
    fn route_backward(
        backend: &B,
        rule: RouterRule,
        logits: &B::Rows,
        dispatch: &Dispatch,
        weights: &B::Rows,
        d_weights: &B::Rows,
    ) -> B::Rows;

    /// Adds `Σ weight · part[row]` to `onto[row]` over the experts of each row in ascending order, one term after the
    /// other; `parts`, by [`Dispatch::parts`], are `[rows of the part, width]`. Without weights, all are 1.
    fn combine(backend: &B, parts: &[B::Rows], dispatch: &Dispatch, weights: Option<&B::Rows>, onto: &mut B::Rows);

    /// Returns the gradients with respect to the parts, and to the weights, of [`FamilyOps::combine`], given that with
    /// respect to its result.
    fn combine_backward(
        backend: &B,
        parts: &[B::Rows],
        dispatch: &Dispatch,
        weights: &B::Rows,
        d_out: &B::Rows,
    ) -> (Vec<B::Rows>, B::Rows);

    /// [`FamilyOps::combine_backward`] for only the parts of the experts in `held`: the gradients with respect to these
    /// parts, and to the weights of their experts. The gradient of other experts' weights is zero.
    fn combine_backward_of(
        backend: &B,
        parts: &[B::Rows],
        held: Range<usize>,
        dispatch: &Dispatch,
        weights: &B::Rows,
        d_out: &B::Rows,
    ) -> (Vec<B::Rows>, B::Rows) {
        let mut own = parts.iter();
        let all = dispatch.parts().iter().enumerate().map(|(index, part)| {
            let held = if held.contains(&index) { own.next() } else { None };
            held.map_or_else(|| backend.zeros(part.rows.len(), d_out.width()), |part| backend.copy(part))
        });
        let all: Vec<_> = all.collect();
        let (d_parts, d_weights) = Self::combine_backward(backend, &all, dispatch, weights, d_out);
        (d_parts.into_iter().skip(held.start).take(held.len()).collect(), d_weights)
    }

    /// Returns the same ranks with the backend's transport for rows and parameters among them, if that is not the host.
    /// All ranks call it.
    ///
    /// # Errors
    /// Fails if one of the ranks lacks something; the error is the same on all ranks.
    fn connect(_backend: &B, ranks: Ranks) -> Result<Ranks, String> {
        Ok(ranks)
    }

    /// Gathers the parts of all ranks, in their order, each element as its rank has it. `extents` contains for each
    /// part its rank, ascending, and its number of rows, of `width` elements; `own` are the parts of this rank. All
    /// ranks call it.
    fn gather_parts(
        backend: &B,
        own: &[B::Rows],
        extents: &[(usize, usize)],
        width: usize,
        ranks: &Ranks,
    ) -> Vec<B::Rows> {
        // A sum of which all terms but one are zero.
        let mut all = backend.zeros(extents.iter().map(|(_, rows)| rows).sum(), width);
        let (mut first, mut own, mut places) = (0, own.iter(), Vec::new());
        for (rank, rows) in extents {
            let place: Vec<usize> = (first..first + rows).collect();
            first += rows;
            let part = if *rank == ranks.rank() { own.next() } else { None };
            if let Some(part) = part {
                backend.scatter(part, &place, &mut all);
            }
            places.push(place);
        }
        all.all_reduce(ranks);
        places.iter().map(|rows| backend.gather(&all, rows)).collect()
    }

    /// Returns a copy of the low-rank rows that a linear layer's forward or backward pass returned for a segment of
    /// this rank, `[rows, rank]`.
    fn low_rank_rows(backend: &B, low_rank: &B::LowRank, segment: usize, rank: usize) -> B::Rows;

    /// Returns rows multiplied by a factor.
    fn scaled_rows(backend: &B, scale: f32, from: &B::Rows) -> B::Rows {
        let mut scaled = backend.zeros(from.rows(), from.width());
        Self::add_scaled_rows(backend, scale, from, &mut scaled);
        scaled
    }

    /// Adds a score for each head to the softmax of [`Backend::attention`], with a value of zero: to its output and
    /// log-sum-exp, in place. From these, [`Backend::attention_backward`] computes gradients that include the sinks.
    fn add_sinks(backend: &B, sinks: &B::Vector, attended: &mut [B::Rows; 2]);

    /// Adds the gradient of the sinks to parameter `index` of `grads`, rows in order, given what [`FamilyOps::add_sinks`] left and the
    /// gradient with respect to the output.
    fn sinks_backward(
        backend: &B,
        sinks: &B::Vector,
        attended: [&B::Rows; 2],
        d_out: &B::Rows,
        grads: &mut B::Params,
        index: usize,
    );

    /// Computes `x · w + b` for some rows of `x`, normalised hidden states. Nothing is rounded to
    /// [`Dtype`](super::Dtype); the order of the sum depends only on the width, and the bias is added last.
    fn scalar_head(backend: &B, head: ScalarHead<'_, B>, x: &B::Rows, rows: Range<usize>) -> Vec<f32>;

    /// Writes the gradient with respect to these rows of `x` to those of `dx`, given that with respect to their values, `dy`.
    /// Those of `w` and `b` are added to the parameters of the same indices of `grads`, rows in order.
    fn scalar_head_backward(
        backend: &B,
        head: ScalarHead<'_, B>,
        x: &B::Rows,
        rows: Range<usize>,
        dy: &[f32],
        dx: &mut B::Rows,
        grads: Option<&mut B::Params>,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_grouped_by_expert_in_order() {
        let dispatch = Dispatch::new(vec![0, 3, 1, 3, 0, 1], 2, 4);
        let of =
            |expert, rows: &[usize], slots: &[usize]| ExpertRows { expert, rows: rows.into(), slots: slots.into() };
        assert_eq!(dispatch.parts(), [of(0, &[0, 2], &[0, 0]), of(1, &[1, 2], &[0, 1]), of(3, &[0, 1], &[1, 1])]);
        assert_eq!(dispatch.places(1), [(1, 0), (2, 1)]);
        assert_eq!(dispatch.experts(2), [0, 1]);
        assert_eq!(dispatch.parts()[2].within(&(1..3)), 1..2);
        assert_eq!(dispatch.counts(&(1..3)), [1, 2, 0, 1]);
        let part = dispatch.of_rows(&(1..3));
        assert_eq!(part.parts(), [of(0, &[1], &[0]), of(1, &[0, 1], &[0, 1]), of(3, &[0], &[1])]);
    }
}
