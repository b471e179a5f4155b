//! A training pass over a microbatch: forward, loss, backward.

use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::OpError;

use super::adapter::{Adapter, RowGroup};
use super::backward::{GradientSink, backward};
use super::early_end::EarlyEnd;
use super::forward::{Activations, Pass, PassInput, forward};
use super::gradient::GradientSum;
use super::image_rows::{ImageRows, PassImages};
use super::kv::KvSequence;
use super::linear::unembedding_segments;
use super::memory::MAX_SAVED_LOGITS;
use super::mrope::{ImageGrid, coordinates};
#[cfg(test)]
use super::pass_losses::TrainOutput;
use super::pass_losses::{FailedDatum, GroupOutputs, losses};
use super::scalar_head::{self, RunHead};
use super::vocabulary::{head_backward, head_logprobs};
use super::weights::Weights;
use super::zero::weight_source::WeightSource;
use crate::backend::{Backend, GradientSinks, HeadGradient, Held, Targets};
#[cfg(test)]
use crate::collective::Ranks;
use crate::interrupt::Interrupt;
use crate::loss::{LossFn, LossValue, PreparedDatum};
use crate::vision::ImageEmbedding;

/// Datums of one run in a microbatch.
pub(crate) struct TrainGroup<'a, B: Backend> {
    /// The run's adapter; `None` for a full-parameter run, which has a pass of its own.
    pub adapter: Option<Arc<Adapter<B>>>,
    /// The run's scalar head, which takes the unembedding's place: all groups of a pass have one, or none has.
    pub scalar_head: Option<RunHead<B>>,
    pub loss: LossFn,
    pub data: Vec<&'a PreparedDatum>,
    /// Embeddings of each datum's images, in the order of [`PreparedDatum::images`]; empty if no datum has images.
    pub images: Vec<Vec<Arc<ImageEmbedding<B>>>>,
    /// Losses of its first datums, which were evaluated before the pass with the same log-probabilities.
    pub evaluated: Vec<Result<LossValue, OpError>>,
    /// Ends the evaluation of a custom loss with an error.
    pub interrupt: Interrupt,
    /// Destination of its gradient; with `None` only the loss is computed.
    pub grads: Option<&'a mut GradientSum<B>>,
}

/// Rows of the microbatch that have a gradient.
struct ActiveRows<B: Backend> {
    rows: Vec<usize>,
    /// The same rows by sequence, counted from the first of them.
    sequences: Vec<Range<usize>>,
    targets: Targets,
    d_logprobs: Vec<f32>,
    groups: Vec<RowGroup<B>>,
}

/// What bounds a pass.
pub(crate) struct PassBounds<'a> {
    /// Number of blocks that save their activations; the others recompute them, with the same bits.
    pub saved: usize,
    /// Number of elements that custom losses may cost together.
    pub allowance: usize,
    /// Ends the pass between its blocks.
    pub early_end: &'a EarlyEnd,
}

/// [`train_pass_within`] for losses that may cost anything. It ends early once the interrupts of all groups are set.
#[cfg(test)]
pub(crate) fn train_pass<'w, B: Backend>(
    backend: &B,
    weights: impl Into<WeightSource<'w, B>>,
    groups: &mut [TrainGroup<'_, B>],
    full: bool,
    saved: usize,
) -> Vec<Result<Vec<TrainOutput>, FailedDatum>> {
    let interrupts = groups.iter().map(|group| group.interrupt.clone()).collect();
    let early_end = EarlyEnd::new(&Ranks::default(), Interrupt::all_of(interrupts));
    let bounds = PassBounds { saved, allowance: usize::MAX, early_end: &early_end };
    let outputs = train_pass_within(backend, weights, groups, full, bounds);
    outputs.into_iter().map(|output| output.map(|output| output.datums)).collect()
}

/// Runs the groups' datums through the model together. The gradient of a group whose loss fails is untouched, unless the
/// pass ends early, which fails all groups: then gradients are incomplete. With `full`, the one group trains all
/// parameters; where replicas divide these, [`GatheredPass::finish`](super::GatheredPass::finish) has to follow, and
/// [`EarlyEnd::finish`] in any case where ranks decide together.
///
/// Custom losses that would cost more than the allowance are postponed, with all behind them in their group.
pub(crate) fn train_pass_within<'w, B: Backend>(
    backend: &B,
    weights: impl Into<WeightSource<'w, B>>,
    groups: &mut [TrainGroup<'_, B>],
    full: bool,
    bounds: PassBounds<'_>,
) -> GroupOutputs {
    let PassBounds { saved, allowance, early_end } = bounds;
    let mut weights = weights.into();
    let data: Vec<&PreparedDatum> = groups.iter().flat_map(|g| g.data.iter().copied()).collect();
    let tokens: Vec<u32> = data.iter().flat_map(|d| d.tokens.iter().copied()).collect();
    let row_groups = row_groups(groups);
    let mut kv = vec![KvSequence::default(); data.len()];
    let trains = groups.iter().any(|g| g.grads.is_some());
    let rows = rows_of(&data);
    let images = images_of(groups, &rows);
    let input = PassInput {
        tokens: &tokens,
        rows: &rows,
        kv: &mut kv,
        groups: &row_groups,
        images: images.as_ref(),
        early_end: Some(early_end),
    };
    let Pass { x, activations, dispatches } = forward(backend, &mut weights, input, trains.then_some(saved));
    if weights.ends_early(early_end) {
        return ended_early(groups);
    }
    let targets = targets_of(&data);
    let (w, scalar_head) = weights.head(backend);
    let logit_bytes = tokens.len() * w.model.config.vocab_rows() * size_of::<f32>();
    let lora = unembedding_segments(&row_groups, &[]);
    let save_logits = trains && logit_bytes <= MAX_SAVED_LOGITS;
    let resident = || groups.iter().map(|group| group.scalar_head.clone()).collect();
    let scalar_heads: Option<Vec<RunHead<B>>> = scalar_head.map_or_else(resident, |head| Some(vec![head]));
    let hidden = match &scalar_heads {
        Some(_) => backend.norm(w.final_norm(), &x),
        None => w.head_input(backend, &x),
    };
    let (logprobs, head) = match scalar_heads {
        Some(heads) => (scalar_head::values(backend, &heads, &row_groups, &hidden), Head::Scalar(heads)),
        None => {
            let (logprobs, state) = head_logprobs(backend, &w.model, &w.head(&lora), &hidden, &targets, save_logits);
            (logprobs, Head::Unembedding(state))
        }
    };
    let (mut outputs, d_logprobs) = losses(groups, &logprobs, allowance);
    let datums = outputs.iter_mut().zip(groups.iter()).scan(0, |first, (outputs, group)| {
        *first += group.data.len();
        Some((*first - group.data.len(), outputs))
    });
    for (first, outputs) in datums {
        let datums = outputs.iter_mut().flat_map(|outputs| &mut outputs.datums);
        for (output, (rows, _)) in datums.zip(&rows[first..]) {
            output.expert_tokens = dispatches.iter().map(|dispatch| dispatch.counts(rows)).collect();
        }
    }
    let active = ActiveRows::of(&row_groups, &rows, &targets, &d_logprobs);
    if let Some(activations) = activations
        && !active.rows.is_empty()
    {
        let failed: Vec<bool> = outputs.iter().map(Result::is_err).collect();
        let sinks = groups.iter_mut().zip(failed);
        let sums = sinks.map(|(g, failed)| if failed { None } else { g.grads.as_deref_mut() }).collect();
        let pass = BackwardPass { backend, w, tokens: &tokens, groups: &row_groups, active, early_end };
        pass.run(&mut weights, head, hidden, x, activations, sums, full);
        if weights.ends_early(early_end) {
            return ended_early(groups);
        }
    }
    outputs
}

/// The outcome of a pass whose requests have all been abandoned.
fn ended_early<B: Backend>(groups: &[TrainGroup<'_, B>]) -> GroupOutputs {
    groups.iter().map(|_| Err(FailedDatum::ended_early())).collect()
}

/// State of the end of a forward pass, for its backward pass.
enum Head<B: Backend> {
    Unembedding(B::HeadState),
    /// Scalar head of each group.
    Scalar(Vec<RunHead<B>>),
}

/// The backward pass of a microbatch.
struct BackwardPass<'a, B: Backend> {
    backend: &'a B,
    /// Weights of the end of the model.
    w: Held<'a, Weights<B>>,
    tokens: &'a [u32],
    groups: &'a [RowGroup<B>],
    active: ActiveRows<B>,
    early_end: &'a EarlyEnd,
}

impl<B: Backend> BackwardPass<'_, B> {
    fn run(
        self,
        weights: &mut WeightSource<'_, B>,
        head: Head<B>,
        hidden: B::Rows,
        x: B::Rows,
        activations: Activations<B>,
        mut sums: Vec<Option<&mut GradientSum<B>>>,
        full: bool,
    ) {
        let Self { backend, tokens, groups, early_end, .. } = self;
        if full {
            let Some(Some(sum)) = sums.into_iter().next() else { return };
            let mut ends = weights.gathered().map(|pass| pass.zeros_of_head(backend));
            let own = ends.as_mut().map_or(&mut sum.values, |ends| &mut ends.values);
            let dx = self.head(&head, &hidden, &x, &mut GradientSinks::Full(own), &[]);
            drop((self.w, self.active, head, hidden, x));
            let ends = weights.gathered().zip(ends).and_then(|(pass, ends)| pass.reduce_head(ends, sum));
            backward(backend, weights, tokens, groups, activations, dx, GradientSink::Full(sum, ends), early_end);
        } else {
            let trains: Vec<bool> = sums.iter().map(Option::is_some).collect();
            let mut sinks: Vec<_> = sums.iter_mut().map(|sum| sum.as_mut().map(|sum| &mut sum.values)).collect();
            let dx = self.head(&head, &hidden, &x, &mut GradientSinks::Adapters(&mut sinks), &trains);
            drop((head, hidden, x));
            backward(backend, weights, tokens, groups, activations, dx, GradientSink::Adapters(&mut sinks), early_end);
        }
    }

    /// Gradient with respect to the residual stream after the last block; those of the head's parameters and of the final
    /// norm go to the sinks.
    fn head(
        &self,
        head: &Head<B>,
        hidden: &B::Rows,
        x: &B::Rows,
        sinks: &mut GradientSinks<'_, '_, B>,
        trains: &[bool],
    ) -> B::Rows {
        let (backend, w, active) = (self.backend, &self.w, &self.active);
        let width = w.model.config.hidden_size;
        let ActiveRows { rows, sequences, targets, d_logprobs, groups } = active;
        let hidden = backend.gather(hidden, rows);
        let d_hidden = match head {
            Head::Unembedding(state) => {
                let lora = unembedding_segments(groups, trains);
                let gradient = HeadGradient { rows, sequences, targets, d_logprobs };
                let d_scaled = head_backward(backend, &w.model, &w.head(&lora), &hidden, &gradient, state, sinks);
                w.with_logit_scale(backend, d_scaled)
            }
            Head::Scalar(heads) => scalar_head::backward(backend, heads, groups, &hidden, d_logprobs, sinks),
        };
        drop(hidden);
        let mut dx_active = backend.zeros(active.rows.len(), width);
        let dw = match sinks {
            GradientSinks::Full(params) => Some((&mut **params, w.model.table.norm)),
            GradientSinks::Adapters(_) => None,
        };
        backend.norm_backward(w.final_norm(), &backend.gather(x, &active.rows), &d_hidden, &mut dx_active, dw);
        let mut dx = backend.zeros(self.tokens.len(), width);
        backend.scatter(&dx_active, &active.rows, &mut dx);
        dx
    }
}

/// Images of the datums, whose rows are given; `None` for a batch without images.
fn images_of<B: Backend>(groups: &[TrainGroup<'_, B>], rows: &[(Range<usize>, usize)]) -> Option<PassImages<B>> {
    if groups.iter().flat_map(|group| &group.images).all(Vec::is_empty) {
        return None;
    }
    let mut pass = PassImages { coordinates: Vec::new(), images: Vec::new() };
    let mut rows = rows.iter();
    for group in groups {
        for (at, (datum, (rows, _))) in group.data.iter().zip(&mut rows).enumerate() {
            let grids: Vec<ImageGrid> = datum.images.iter().map(ImageGrid::of).collect();
            pass.coordinates.extend((0..rows.len()).map(|index| coordinates(&grids, index)));
            for (grid, embedding) in grids.iter().zip(group.images.get(at).into_iter().flatten()) {
                let start = rows.start + grid.start;
                let embedding = Arc::clone(embedding);
                pass.images.push(ImageRows { rows: start..start + grid.tokens(), first: 0, embedding });
            }
        }
    }
    Some(pass)
}

/// Rows of each datum; every sequence starts at position 0.
fn rows_of(data: &[&PreparedDatum]) -> Vec<(Range<usize>, usize)> {
    let mut row = 0;
    data.iter()
        .map(|d| {
            row += d.tokens.len();
            (row - d.tokens.len()..row, 0)
        })
        .collect()
}

fn row_groups<B: Backend>(groups: &[TrainGroup<'_, B>]) -> Vec<RowGroup<B>> {
    let mut row = 0;
    groups
        .iter()
        .map(|g| {
            let start = row;
            row += g.data.iter().map(|d| d.tokens.len()).sum::<usize>();
            RowGroup { rows: start..row, adapter: g.adapter.clone() }
        })
        .collect()
}

fn targets_of(data: &[&PreparedDatum]) -> Targets {
    let mut targets = Targets::empty();
    for datum in data {
        datum.targets.chunks(datum.k.max(1)).for_each(|row| targets.push(row.iter().copied()));
    }
    targets
}

impl<B: Backend> ActiveRows<B> {
    /// `sequences` are the rows of each sequence in the batch, in order.
    fn of(groups: &[RowGroup<B>], sequences: &[(Range<usize>, usize)], targets: &Targets, d_logprobs: &[f32]) -> Self {
        let (mut rows, mut own, mut gradients, mut active) = (Vec::new(), Targets::empty(), Vec::new(), Vec::new());
        for group in groups {
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
        let sequences = sequences.iter().map(|(rows, _)| before(rows.start)..before(rows.end)).collect();
        Self { rows, sequences, targets: own, d_logprobs: gradients, groups: active }
    }
}
