//! The end of a training pass: the final norm and the unembedding, or scalar heads, over parts of a long batch.

use std::ops::Range;

use super::adapter::RowGroup;
use super::linear::unembedding_segments;
use super::memory::MAX_SAVED_LOGITS;
use super::parts::Part;
use super::scalar_head::{self, RunHead};
use super::vocabulary::{head_backward, head_entropies, head_logprobs};
use super::weights::Weights;
use crate::backend::{Backend, EntropyGradient, GradientSinks, HeadGradient, Held, Rows, Targets};

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

/// Gradients of the losses with respect to what the head computed.
pub(super) struct HeadLosses {
    /// Gradients with respect to each target's log-probability, or each row's value.
    pub(super) d_logprobs: Vec<f32>,
    /// Entropy of each row, 0 where no loss asks for it, and the gradient with respect to it; empty if none does.
    pub(super) entropies: Vec<f32>,
    pub(super) d_entropies: Vec<f32>,
}

impl HeadLosses {
    /// Whether there is any gradient.
    pub(super) fn have_gradient(&self) -> bool {
        self.d_logprobs.iter().chain(&self.d_entropies).any(|gradient| *gradient != 0.0)
    }
}

/// Rows of a part that have a gradient.
struct ActiveRows<B: Backend> {
    /// Rows of the part.
    rows: Vec<usize>,
    /// The same rows by piece, counted from the first of them.
    pieces: Vec<Range<usize>>,
    targets: Targets,
    d_logprobs: Vec<f32>,
    /// Entropies of these rows and the gradients with respect to them; empty if no loss asks for any.
    entropies: [Vec<f32>; 2],
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

    /// Entropies in nats of the rows that `is_wanted`, and 0 of the others; empty if none is wanted. [`Self::logprobs`] comes
    /// before.
    pub(super) fn entropies(&self, backend: &B, x: &B::Rows, is_wanted: &[bool]) -> Vec<f32> {
        if !is_wanted.contains(&true) {
            return Vec::new();
        }
        let mut entropies = vec![0.0; x.rows()];
        for HeadPart { part, state, .. } in &self.parts {
            let Some(state) = state else { continue };
            let first = part.rows.start;
            let rows: Vec<usize> = (0..part.rows.len()).filter(|row| is_wanted[first + row]).collect();
            if rows.is_empty() {
                continue;
            }
            let at: Vec<usize> = rows.iter().map(|row| first + row).collect();
            let weights = &self.weights;
            let hidden = weights.head_input(backend, &backend.gather(x, &at));
            let groups = groups_among(&part.groups, &rows);
            let lora = unembedding_segments(&groups, &[]);
            let own = head_entropies(backend, &weights.model, &weights.head(&lora), &hidden, &rows, state);
            at.into_iter().zip(own).for_each(|(row, entropy)| entropies[row] = entropy);
        }
        entropies
    }

    /// Gradient with respect to the residual stream `x` after the last block, given those with respect to what
    /// [`Self::logprobs`] and [`Self::entropies`] returned; those of the head's parameters and of the final norm go to the sinks. Groups train as `trains`
    /// says.
    pub(super) fn backward(
        &self,
        backend: &B,
        x: &B::Rows,
        losses: &HeadLosses,
        sinks: &mut GradientSinks<'_, '_, B>,
        trains: &[bool],
    ) -> B::Rows {
        let mut dx = backend.zeros(x.rows(), x.width());
        let mut first = 0;
        for head in &self.parts {
            let own = &losses.d_logprobs[first..first + head.targets.ids.len()];
            first += own.len();
            let active = ActiveRows::of(&head.part, &head.targets, own, losses);
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
        let ActiveRows { rows, pieces, targets, d_logprobs, entropies: [entropies, d_entropies], groups } = active;
        let d_hidden = match (&self.scalar, &part.state) {
            (Some(heads), _) => {
                let hidden = backend.norm(weights.final_norm(), x);
                scalar_head::backward(backend, heads, groups, &hidden, d_logprobs, sinks)
            }
            (None, Some(state)) => {
                let (hidden, lora) = (weights.head_input(backend, x), unembedding_segments(groups, trains));
                let entropy = (!entropies.is_empty()).then_some(EntropyGradient { entropies, d_entropies });
                let gradient = HeadGradient { rows, sequences: pieces, targets, d_logprobs, entropy };
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
    /// Those of a part with these targets, which have the gradients `d_logprobs`.
    fn of(part: &Part<B>, targets: &Targets, d_logprobs: &[f32], losses: &HeadLosses) -> Self {
        let d_entropy = |row: usize| losses.d_entropies.get(part.rows.start + row).copied().unwrap_or(0.0);
        let is_active = |row: &usize| d_entropy(*row) != 0.0 || d_logprobs[targets.of(*row)].iter().any(|d| *d != 0.0);
        let rows: Vec<usize> = part.groups.iter().flat_map(|group| group.rows.clone()).filter(is_active).collect();
        let (mut own, mut gradients) = (Targets::empty(), Vec::new());
        for row in &rows {
            own.push(targets.ids[targets.of(*row)].iter().copied());
            gradients.extend_from_slice(&d_logprobs[targets.of(*row)]);
        }
        let of_rows = |values: &Vec<f32>| match values.is_empty() {
            true => Vec::new(),
            false => rows.iter().map(|row| values[part.rows.start + row]).collect(),
        };
        let entropies = [of_rows(&losses.entropies), of_rows(&losses.d_entropies)];
        let pieces = part.pieces.iter().map(|piece| among(piece, &rows)).collect();
        let groups = groups_among(&part.groups, &rows);
        Self { rows, pieces, targets: own, d_logprobs: gradients, entropies, groups }
    }
}

/// Those of some rows, which are in order, that are in a range, counted among them.
fn among(range: &Range<usize>, rows: &[usize]) -> Range<usize> {
    let before = |row: usize| rows.partition_point(|own| *own < row);
    before(range.start)..before(range.end)
}

/// Groups with their part of some rows, which are in order, counted among these.
fn groups_among<B: Backend>(groups: &[RowGroup<B>], rows: &[usize]) -> Vec<RowGroup<B>> {
    let of = |group: &RowGroup<B>| RowGroup { rows: among(&group.rows, rows), adapter: group.adapter.clone() };
    groups.iter().map(of).collect()
}
