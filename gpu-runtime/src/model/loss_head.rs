//! The end of a training pass: the final norm and the unembedding, or scalar heads, over parts of a long batch.

use std::ops::Range;

use super::adapter::RowGroup;
use super::linear::unembedding_segments;
use super::memory::MAX_SAVED_LOGITS;
use super::parts::Part;
use super::scalar_head::{self, RunHead};
use super::vocabulary::{head_backward, head_divergences, head_entropies, head_log_sums, head_logprobs};
use super::weights::Weights;
use crate::backend::{
    Backend, DivergenceGradient, EntropyGradient, GradientSinks, HeadGradient, Held, ReferenceRows, Rows, Targets,
};

/// The end of the model in a pass over a batch.
pub(super) struct LossHead<'w, B: Backend> {
    weights: Held<'w, Weights<B>>,
    /// Scalar head of each group, which take the unembedding's place.
    scalar: Option<Vec<RunHead<B>>>,
    parts: Vec<HeadPart<B>>,
    /// The base model, if losses compare distributions with its own.
    reference: Option<BaseRows<'w, B>>,
}

/// The base model's end over a batch, with which the distributions of its rows are compared.
pub(super) struct BaseRows<'w, B: Backend> {
    pub(super) weights: &'w Weights<B>,
    /// Residual stream after the last block, of all rows.
    pub(super) x: B::Rows,
    /// Log-sum-exps of the rows that are compared, once these are known.
    pub(super) lse: Vec<f32>,
}

impl<B: Backend> BaseRows<'_, B> {
    /// What the unembedding reads for some rows.
    fn hidden(&self, backend: &B, rows: &[usize]) -> B::Rows {
        self.weights.head_input(backend, &backend.gather(&self.x, rows))
    }

    fn lse(&self, rows: &[usize]) -> Vec<f32> {
        rows.iter().map(|row| self.lse[*row]).collect()
    }
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
    /// The same of divergences from the base model.
    pub(super) divergences: Vec<f32>,
    pub(super) d_divergences: Vec<f32>,
}

impl HeadLosses {
    /// Whether there is any gradient.
    pub(super) fn have_gradient(&self) -> bool {
        let all = self.d_logprobs.iter().chain(&self.d_entropies).chain(&self.d_divergences);
        all.copied().any(|gradient| gradient != 0.0)
    }
}

/// Rows of a part whose distributions are asked for.
struct WantedRows<B: Backend> {
    /// Rows of the part.
    rows: Vec<usize>,
    /// The same rows of the batch.
    at: Vec<usize>,
    groups: Vec<RowGroup<B>>,
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
    /// The same of divergences.
    divergences: [Vec<f32>; 2],
    groups: Vec<RowGroup<B>>,
}

impl<'w, B: Backend> LossHead<'w, B> {
    /// The end of a model, or scalar heads of the groups, for a batch with these sequences. Groups cover the rows in order. Losses
    /// may compare distributions with those of `reference`, if it is given.
    pub(super) fn new(
        weights: Held<'w, Weights<B>>,
        scalar: Option<Vec<RunHead<B>>>,
        sequences: &[Range<usize>],
        groups: &[RowGroup<B>],
        targets: &Targets,
        reference: Option<BaseRows<'w, B>>,
    ) -> Self {
        let of = |part: Part<B>| HeadPart { targets: targets.of_rows(part.rows.clone()), part, state: None };
        let parts = Part::all(sequences.iter(), groups).into_iter().map(of).collect();
        Self { weights, scalar, parts, reference }
    }

    /// Log-probabilities of the rows' targets, or values, given the residual stream `x`. State is kept for a backward pass, if
    /// there is one.
    pub(super) fn logprobs(&mut self, backend: &B, x: &B::Rows, trains: bool) -> Vec<f32> {
        let Self { weights, scalar, parts, .. } = self;
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
        for (state, wanted) in self.parts_with(is_wanted) {
            let weights = &self.weights;
            let hidden = weights.head_input(backend, &backend.gather(x, &wanted.at));
            let lora = unembedding_segments(&wanted.groups, &[]);
            let own = head_entropies(backend, &weights.model, &weights.head(&lora), &hidden, &wanted.rows, state);
            wanted.at.into_iter().zip(own).for_each(|(row, entropy)| entropies[row] = entropy);
        }
        entropies
    }

    /// Divergences in nats, from the base model's distributions, of the rows that `is_wanted`, and 0 of the others; empty if none is
    /// wanted. [`Self::logprobs`] comes before.
    pub(super) fn divergences(&mut self, backend: &B, x: &B::Rows, is_wanted: &[bool]) -> Vec<f32> {
        let Some(mut reference) = self.reference.take().filter(|_| is_wanted.contains(&true)) else {
            return Vec::new();
        };
        let (mut divergences, mut all_lse) = (vec![0.0; x.rows()], vec![0.0; x.rows()]);
        for (state, wanted) in self.parts_with(is_wanted) {
            let (base, model) = (reference.weights, &self.weights.model);
            let others = reference.hidden(backend, &wanted.at);
            let lse = head_log_sums(backend, model, &base.head(&[]), &others);
            let hidden = self.weights.head_input(backend, &backend.gather(x, &wanted.at));
            let lora = unembedding_segments(&wanted.groups, &[]);
            let head = self.weights.head(&lora);
            let other = ReferenceRows { unembedding: base.head(&[]).weight, hidden: &others, lse: &lse };
            let own = head_divergences(backend, model, &head, &hidden, &wanted.rows, state, &other);
            for ((row, divergence), lse) in wanted.at.into_iter().zip(own).zip(lse) {
                (divergences[row], all_lse[row]) = (divergence, lse);
            }
        }
        reference.lse = all_lse;
        self.reference = Some(reference);
        divergences
    }

    /// The parts of the batch with rows that are wanted, and these.
    fn parts_with<'s>(&'s self, is_wanted: &'s [bool]) -> impl Iterator<Item = (&'s B::HeadState, WantedRows<B>)> {
        self.parts.iter().filter_map(move |HeadPart { part, state, .. }| {
            let first = part.rows.start;
            let rows: Vec<usize> = (0..part.rows.len()).filter(|row| is_wanted[first + row]).collect();
            let at = rows.iter().map(|row| first + row).collect();
            let groups = groups_among(&part.groups, &rows);
            let wanted = (!rows.is_empty()).then_some(WantedRows { rows, at, groups });
            state.as_ref().zip(wanted)
        })
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
        let ActiveRows { rows, pieces, targets, d_logprobs, groups, .. } = active;
        let [entropies, d_entropies] = &active.entropies;
        let d_hidden = match (&self.scalar, &part.state) {
            (Some(heads), _) => {
                let hidden = backend.norm(weights.final_norm(), x);
                scalar_head::backward(backend, heads, groups, &hidden, d_logprobs, sinks)
            }
            (None, Some(state)) => {
                let (hidden, lora) = (weights.head_input(backend, x), unembedding_segments(groups, trains));
                let entropy = (!entropies.is_empty()).then_some(EntropyGradient { entropies, d_entropies });
                let compared = self.reference.as_ref().filter(|_| !active.divergences[0].is_empty()).map(|reference| {
                    let at: Vec<usize> = rows.iter().map(|row| part.part.rows.start + row).collect();
                    (reference.weights.head(&[]).weight, reference.hidden(backend, &at), reference.lse(&at))
                });
                let divergence = compared.as_ref().map(|(unembedding, hidden, lse)| DivergenceGradient {
                    reference: ReferenceRows { unembedding: *unembedding, hidden, lse },
                    divergences: &active.divergences[0],
                    d_divergences: &active.divergences[1],
                });
                let divergence = divergence.as_ref();
                let gradient = HeadGradient { rows, sequences: pieces, targets, d_logprobs, entropy, divergence };
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
        let of_row = |d: &[f32], row: usize| d.get(part.rows.start + row).copied().unwrap_or(0.0);
        let is_active = |row: &usize| {
            let of_distribution = [&losses.d_entropies, &losses.d_divergences].map(|d| of_row(d, *row));
            d_logprobs[targets.of(*row)].iter().chain(&of_distribution).any(|d| *d != 0.0)
        };
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
        let divergences = [of_rows(&losses.divergences), of_rows(&losses.d_divergences)];
        let pieces = part.pieces.iter().map(|piece| among(piece, &rows)).collect();
        let groups = groups_among(&part.groups, &rows);
        Self { rows, pieces, targets: own, d_logprobs: gradients, entropies, divergences, groups }
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
