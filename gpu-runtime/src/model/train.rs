//! A training pass over a microbatch: forward, loss, backward.

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::OpError;

use super::adapter::{Adapter, RowGroup};
use super::backward::{BackwardInput, GradientSink, backward};
use super::early_end::EarlyEnd;
use super::forward::{Activations, Pass, PassInput, forward};
use super::gradient::GradientSum;
use super::image_rows::{ImageRows, PassImages};
use super::loss_head::{BaseRows, HeadLosses, LossHead};
use super::mrope::{ImageGrid, coordinates};
#[cfg(test)]
use super::pass_losses::TrainOutput;
use super::pass_losses::{FailedDatum, GroupOutputs, HeadOutputs, losses};
use super::recompute::Saved;
use super::scalar_head::RunHead;
use super::weights::Weights;
use super::zero::weight_source::WeightSource;
use crate::backend::kv::KvSequence;
use crate::backend::{Backend, GradientSinks, Targets};
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

/// The weights of a training pass.
pub(crate) struct TrainWeights<'w, B: Backend> {
    pub weights: WeightSource<'w, B>,
    /// Those of the base model, with whose distributions losses may compare.
    pub base: &'w Weights<B>,
}

impl<'w, B: Backend> From<&'w Weights<B>> for TrainWeights<'w, B> {
    /// The base model's own weights, to which adapters are added.
    fn from(weights: &'w Weights<B>) -> Self {
        Self { weights: weights.into(), base: weights }
    }
}

/// What bounds a pass.
pub(crate) struct PassBounds<'a> {
    pub saved: Saved,
    /// Number of elements that custom losses may cost together.
    pub allowance: usize,
    /// Ends the pass between its blocks.
    pub early_end: &'a EarlyEnd,
}

/// [`train_pass_within`] for losses that may cost anything. It ends early once the interrupts of all groups are set.
#[cfg(test)]
pub(crate) fn train_pass<'w, B: Backend>(
    backend: &B,
    weights: impl Into<TrainWeights<'w, B>>,
    groups: &mut [TrainGroup<'_, B>],
    full: bool,
    saved: Saved,
) -> Vec<Result<Vec<TrainOutput>, FailedDatum>> {
    let interrupts = groups.iter().map(|group| group.interrupt.clone()).collect();
    let early_end = EarlyEnd::new(&Ranks::default(), Interrupt::all_of(interrupts));
    let bounds = PassBounds { saved, allowance: usize::MAX, early_end: &early_end };
    let outputs = train_pass_within(backend, weights.into(), groups, full, bounds);
    outputs.into_iter().map(|output| output.map(|output| output.datums)).collect()
}

/// Runs the groups' datums through the model together. The gradient of a group whose loss fails is untouched, unless the
/// pass ends early, which fails all groups: then gradients are incomplete. With `full`, the one group trains all
/// parameters; where replicas divide these, [`GatheredPass::finish`](super::GatheredPass::finish) has to follow, and
/// [`EarlyEnd::finish`] in any case where ranks decide together.
///
/// Custom losses that would cost more than the allowance are postponed, with all behind them in their group. Where losses compare
/// distributions with those of the base model, the pass begins with a forward pass of that, which does not end early.
pub(crate) fn train_pass_within<B: Backend>(
    backend: &B,
    weights: TrainWeights<'_, B>,
    groups: &mut [TrainGroup<'_, B>],
    full: bool,
    bounds: PassBounds<'_>,
) -> GroupOutputs {
    let PassBounds { saved, allowance, early_end } = bounds;
    let TrainWeights { mut weights, base } = weights;
    // Replicas gather units in an order that is settled.
    let saved = if weights.gathered().is_some() { Saved::with_all_inputs(saved.blocks) } else { saved };
    let data: Vec<&PreparedDatum> = groups.iter().flat_map(|g| g.data.iter().copied()).collect();
    let tokens: Vec<u32> = data.iter().flat_map(|d| d.tokens.iter().copied()).collect();
    let row_groups = row_groups(groups);
    let mut kv = vec![KvSequence::default(); data.len()];
    let trains = groups.iter().any(|g| g.grads.is_some());
    let rows = rows_of(&data);
    let images = images_of(groups, &rows);
    let wanted = |of: fn(&PreparedDatum) -> bool| -> Vec<bool> {
        data.iter().flat_map(|datum| repeat_n(of(datum), datum.tokens.len())).collect()
    };
    let compared = wanted(|datum| datum.kl_weights.is_some());
    let reference = compared.contains(&true).then(|| base_rows(backend, base, &tokens, &rows, images.as_ref()));
    let input = PassInput {
        tokens: &tokens,
        rows: &rows,
        kv: &mut kv,
        is_continued: false,
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
    let resident = || groups.iter().map(|group| group.scalar_head.clone()).collect();
    let scalar_heads: Option<Vec<RunHead<B>>> = scalar_head.map_or_else(resident, |head| Some(vec![head]));
    let sequences: Vec<Range<usize>> = rows.iter().map(|(rows, _)| rows.clone()).collect();
    let mut head = LossHead::new(w, scalar_heads, &sequences, &row_groups, &targets, reference);
    let logprobs = head.logprobs(backend, &x, trains);
    let entropies = head.entropies(backend, &x, &wanted(|datum| datum.entropy_weights.is_some()));
    let divergences = head.divergences(backend, &x, &compared);
    let (mut outputs, head_losses) = losses(groups, HeadOutputs { logprobs, entropies, divergences }, allowance);
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
    if let Some(activations) = activations
        && head_losses.have_gradient()
    {
        let failed: Vec<bool> = outputs.iter().map(Result::is_err).collect();
        let sinks = groups.iter_mut().zip(failed);
        let sums = sinks.map(|(g, failed)| if failed { None } else { g.grads.as_deref_mut() }).collect();
        let input = BackwardInput { tokens: &tokens, groups: &row_groups, images: images.as_ref(), early_end };
        BackwardPass { backend, input, head, x, losses: head_losses }.run(&mut weights, activations, sums, full);
        if weights.ends_early(early_end) {
            return ended_early(groups);
        }
    }
    outputs
}

/// The end of the base model for a batch: a forward pass without adapters.
fn base_rows<'w, B: Backend>(
    backend: &B,
    weights: &'w Weights<B>,
    tokens: &[u32],
    rows: &[(Range<usize>, usize)],
    images: Option<&PassImages<B>>,
) -> BaseRows<'w, B> {
    let groups = [RowGroup { rows: 0..tokens.len(), adapter: None }];
    let mut kv = vec![KvSequence::default(); rows.len()];
    let (is_continued, early_end) = (false, None);
    let input = PassInput { tokens, rows, kv: &mut kv, is_continued, groups: &groups, images, early_end };
    let x = forward(backend, &mut weights.into(), input, None).x;
    BaseRows { weights, x, lse: Vec::new() }
}

/// The outcome of a pass whose requests have all been abandoned.
fn ended_early<B: Backend>(groups: &[TrainGroup<'_, B>]) -> GroupOutputs {
    groups.iter().map(|_| Err(FailedDatum::ended_early())).collect()
}

/// The backward pass of a microbatch.
struct BackwardPass<'a, B: Backend> {
    backend: &'a B,
    input: BackwardInput<'a, B>,
    head: LossHead<'a, B>,
    /// Residual stream after the last block.
    x: B::Rows,
    losses: HeadLosses,
}

impl<B: Backend> BackwardPass<'_, B> {
    fn run(
        self,
        weights: &mut WeightSource<'_, B>,
        activations: Activations<B>,
        mut sums: Vec<Option<&mut GradientSum<B>>>,
        full: bool,
    ) {
        let Self { backend, input, head, x, losses } = self;
        if full {
            let Some(Some(sum)) = sums.into_iter().next() else { return };
            let mut ends = weights.gathered().map(|pass| pass.zeros_of_head(backend));
            let own = ends.as_mut().map_or(&mut sum.values, |ends| &mut ends.values);
            let dx = head.backward(backend, &x, &losses, &mut GradientSinks::Full(own), &[]);
            drop((head, x));
            let ends = weights.gathered().zip(ends).and_then(|(pass, ends)| pass.reduce_head(ends, sum));
            backward(backend, weights, input, activations, dx, GradientSink::Full(sum, ends));
        } else {
            let trains: Vec<bool> = sums.iter().map(Option::is_some).collect();
            let mut sinks: Vec<_> = sums.iter_mut().map(|sum| sum.as_mut().map(|sum| &mut sum.values)).collect();
            let dx = head.backward(backend, &x, &losses, &mut GradientSinks::Adapters(&mut sinks), &trains);
            drop((head, x));
            backward(backend, weights, input, activations, dx, GradientSink::Adapters(&mut sinks));
        }
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
