//! The end of a training pass: the final norm and the unembedding, or scalar heads, over parts of a long batch.

use std::ops::Range;

use super::adapter::RowGroup;
use super::linear::unembedding_segments;
use super::memory::MAX_SAVED_LOGITS;
use super::parts::Part;
use super::scalar_head::{self, RunHead};
use super::vocabulary::{head_backward, head_logprobs};
use super::weights::Weights;
use crate::backend::{Backend, GradientSinks, HeadGradient, Held, Rows, Targets};

/// The end of the model in a pass over a batch.
pub(super) struct LossHead<'w, B: Backend> {
    weights: Held<'w, Weights<B>>,
    /// Scalar head of each group, which take the unembedding's place.
    scalar: Option<Vec<RunHead<B>>>,
    parts: Vec<HeadPart<B>>,
}

/// A part of the batch.
struct HeadPart<B: Backend> {
    part: Part<B>,
    targets: Targets,
    /// State of the unembedding's forward pass.
    state: Option<B::HeadState>,
}

/// Rows of a part that have a gradient.
struct ActiveRows<B: Backend> {
    /// Rows of the part.
    rows: Vec<usize>,
    /// The same rows by piece, counted from the first of them.
    pieces: Vec<Range<usize>>,
    targets: Targets,
    d_logprobs: Vec<f32>,
    groups: Vec<RowGroup<B>>,
}

impl<'w, B: Backend> LossHead<'w, B> {
    /// The end of a model, or scalar heads of the groups, for a batch with these sequences. Groups cover the rows in order.
    pub(super) fn new(
        weights: Held<'w, Weights<B>>,
        scalar: Option<Vec<RunHead<B>>>,
        sequences: &[Range<usize>],
        groups: &[RowGroup<B>],
        targets: &Targets,
    ) -> Self {
        let of = |part: Part<B>| HeadPart { targets: targets.of_rows(part.rows.clone()), part, state: None };
        let parts = Part::all(sequences.iter(), groups).into_iter().map(of).collect();
        Self { weights, scalar, parts }
    }

    /// Log-probabilities of the rows' targets, or values, given the residual stream `x`. State is kept for a backward pass, if
    /// there is one.
    pub(super) fn logprobs(&mut self, backend: &B, x: &B::Rows, trains: bool) -> Vec<f32> {
        let Self { weights, scalar, parts } = self;
        let logit_bytes = x.rows() * weights.model.config.vocab_rows() * size_of::<f32>();
        let save_logits = trains && logit_bytes <= MAX_SAVED_LOGITS;
        let is_whole = parts.len() == 1;
        let mut logprobs = Vec::new();
        for HeadPart { part, targets, state } in parts {
            let x = if is_whole { Held::Borrowed(x) } else { Held::Owned(backend.gather(x, &part.indices())) };
            match scalar {
                Some(heads) => {
                    let hidden = backend.norm(weights.final_norm(), &x);
                    logprobs.extend(scalar_head::values(backend, heads, &part.groups, &hidden));
                }
                None => {
                    let (hidden, lora) = (weights.head_input(backend, &x), unembedding_segments(&part.groups, &[]));
                    let head = weights.head(&lora);
                    let (own, kept) = head_logprobs(backend, &weights.model, &head, &hidden, targets, save_logits);
                    logprobs.extend(own);
                    *state = Some(kept);
                }
            }
        }
        logprobs
    }

    /// Gradient with respect to the residual stream `x` after the last block, given those with respect to what
    /// [`Self::logprobs`] returned; those of the head's parameters and of the final norm go to the sinks. Groups train as `trains`
    /// says.
    pub(super) fn backward(
        &self,
        backend: &B,
        x: &B::Rows,
        d_logprobs: &[f32],
        sinks: &mut GradientSinks<'_, '_, B>,
        trains: &[bool],
    ) -> B::Rows {
        let mut dx = backend.zeros(x.rows(), x.width());
        let mut first = 0;
        for head in &self.parts {
            let own = &d_logprobs[first..first + head.targets.ids.len()];
            first += own.len();
            let active = ActiveRows::of(&head.part, &head.targets, own);
            if active.rows.is_empty() {
                continue;
            }
            let rows: Vec<usize> = active.rows.iter().map(|row| head.part.rows.start + row).collect();
            let x = backend.gather(x, &rows);
            backend.scatter(&self.part_backward(backend, head, &active, &x, sinks, trains), &rows, &mut dx);
        }
        dx
    }

    /// Gradient with respect to the active rows `x` of a part.
    fn part_backward(
        &self,
        backend: &B,
        part: &HeadPart<B>,
        active: &ActiveRows<B>,
        x: &B::Rows,
        sinks: &mut GradientSinks<'_, '_, B>,
        trains: &[bool],
    ) -> B::Rows {
        let weights = &self.weights;
        let ActiveRows { rows, pieces, targets, d_logprobs, groups } = active;
        let d_hidden = match (&self.scalar, &part.state) {
            (Some(heads), _) => {
                let hidden = backend.norm(weights.final_norm(), x);
                scalar_head::backward(backend, heads, groups, &hidden, d_logprobs, sinks)
            }
            (None, Some(state)) => {
                let (hidden, lora) = (weights.head_input(backend, x), unembedding_segments(groups, trains));
                let gradient = HeadGradient { rows, sequences: pieces, targets, d_logprobs };
                let head = weights.head(&lora);
                let d_scaled = head_backward(backend, &weights.model, &head, &hidden, &gradient, state, sinks);
                weights.with_logit_scale(backend, d_scaled)
            }
            (None, None) => unreachable!("the backward pass follows the forward pass"),
        };
        let mut dx = backend.zeros(x.rows(), x.width());
        let dw = match sinks {
            GradientSinks::Full(params) => Some((&mut **params, weights.model.table.norm)),
            GradientSinks::Adapters(_) => None,
        };
        backend.norm_backward(weights.final_norm(), x, &d_hidden, &mut dx, dw);
        dx
    }
}

impl<B: Backend> ActiveRows<B> {
    fn of(part: &Part<B>, targets: &Targets, d_logprobs: &[f32]) -> Self {
        let (mut rows, mut own, mut gradients, mut active) = (Vec::new(), Targets::empty(), Vec::new(), Vec::new());
        for group in &part.groups {
            let start = rows.len();
            for row in group.rows.clone() {
                let at = targets.of(row);
                if d_logprobs[at.clone()].iter().any(|d| *d != 0.0) {
                    rows.push(row);
                    own.push(targets.ids[at.clone()].iter().copied());
                    gradients.extend_from_slice(&d_logprobs[at]);
                }
            }
            active.push(RowGroup { rows: start..rows.len(), adapter: group.adapter.clone() });
        }
        let before = |row: usize| rows.partition_point(|active| *active < row);
        let pieces = part.pieces.iter().map(|rows| before(rows.start)..before(rows.end)).collect();
        Self { rows, pieces, targets: own, d_logprobs: gradients, groups: active }
    }
}
