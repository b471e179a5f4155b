//! A training pass over a microbatch: forward, loss, backward.

use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::OpError;

use super::adapter::Adapter;
use super::backward::{BatchView, Sink, backward};
use super::forward::{Group, Pass, PassInput, forward, positions};
use super::gradient::GradientSum;
use super::lora::{Down, backward_down, pair_gradients};
use super::memory::KEPT_LOGITS;
use super::params::Gradients;
use super::score::{ScoredRows, score_rows, unembedding};
use super::weights::Weights;
use crate::kernels::Cpu;
use crate::kernels::attention::KvSequence;
use crate::kernels::elementwise::scale;
use crate::kernels::head::{KeptLogits, Targets};
use crate::kernels::norm::rms_norm_backward;
use crate::loss::{LossFn, LossValue, PreparedDatum, evaluate};

/// Datums of one run in a microbatch.
pub struct TrainGroup<'a> {
    /// The run's adapter; `None` for a full-parameter run, which has a pass of its own.
    pub adapter: Option<Arc<Adapter>>,
    /// Its loss.
    pub loss: LossFn,
    /// Its examples.
    pub data: Vec<&'a PreparedDatum>,
    /// Where its gradient is added; `None` computes the loss alone.
    pub grads: Option<&'a mut GradientSum>,
}

/// What a datum gave.
pub struct TrainOutput {
    /// Log-probabilities of its targets.
    pub logprobs: Vec<f32>,
    /// Its loss.
    pub value: LossValue,
}

/// Rows of the microbatch that have a gradient.
struct Active {
    rows: Vec<usize>,
    targets: Targets,
    dlogprobs: Vec<f32>,
    groups: Vec<Group>,
}

/// Runs the groups' datums through the model together. Returns, per group, the outputs per datum, or the
/// error of the first datum whose loss is not finite; such a group's gradient is untouched. `kept` blocks keep their
/// activations, the others compute them again: the bits are the same.
pub fn train_pass(
    cpu: &Cpu,
    w: &Weights,
    groups: &mut [TrainGroup<'_>],
    full: bool,
    kept: usize,
) -> Vec<Result<Vec<TrainOutput>, OpError>> {
    let data: Vec<&PreparedDatum> = groups.iter().flat_map(|g| g.data.iter().copied()).collect();
    let tokens: Vec<u32> = data.iter().flat_map(|d| d.tokens.iter().copied()).collect();
    let spans = spans_of(&data);
    let mut kv = vec![KvSequence::default(); data.len()];
    let row_groups = row_groups(groups);
    let train = groups.iter().any(|g| g.grads.is_some());
    let input = PassInput { tokens: &tokens, spans: &spans, kv: &mut kv, groups: &row_groups };
    let Pass { x, activations } = forward(cpu, w, input, train.then_some(kept));
    let targets = targets_of(&data);
    let scored = score_rows(cpu, w, &x, &row_groups);
    let logits = tokens.len() * w.config.vocab_size;
    let mut kept = (train && logits * size_of::<f32>() <= KEPT_LOGITS).then(|| cpu.buffer(logits));
    let (logprobs, lse) = scored.target_logprobs(cpu, &targets, kept.as_deref_mut());
    let (outputs, dlogprobs) = losses(groups, &logprobs);
    if let Some(activations) = activations {
        let active = Active::of(&row_groups, &targets, &dlogprobs);
        if !active.rows.is_empty() {
            let lse: Vec<f32> = active.rows.iter().map(|r| lse[*r]).collect();
            let failed: Vec<bool> = outputs.iter().map(Result::is_err).collect();
            let mut sums: Vec<Option<&mut GradientSum>> = groups
                .iter_mut()
                .zip(failed)
                .map(|(g, failed)| if failed { None } else { g.grads.as_deref_mut() })
                .collect();
            let mut sinks: Vec<_> = sums.iter_mut().map(|sum| sum.as_mut().map(|sum| &mut sum.values)).collect();
            let mut dx = cpu.zeros(x.len());
            head_backward(cpu, w, &scored, &x, &active, &lse, kept.as_deref(), &mut sinks, full, &mut dx);
            drop((kept, scored, x));
            let positions = positions(tokens.len(), &spans);
            let batch =
                BatchView { spans: &spans, kv: &kv, groups: &row_groups, positions: &positions, tokens: &tokens };
            let sink = match full {
                true => sums.first_mut().and_then(|sum| sum.as_deref_mut()).map(Sink::Full),
                false => Some(Sink::Adapters(&mut sinks)),
            };
            if let Some(sink) = sink {
                backward(cpu, w, &batch, activations, dx, sink);
            }
        }
    }
    outputs
}

fn spans_of(data: &[&PreparedDatum]) -> Vec<(Range<usize>, usize)> {
    let mut row = 0;
    data.iter()
        .map(|d| {
            row += d.tokens.len();
            (row - d.tokens.len()..row, 0)
        })
        .collect()
}

fn row_groups(groups: &[TrainGroup<'_>]) -> Vec<Group> {
    let mut row = 0;
    groups
        .iter()
        .map(|g| {
            let start = row;
            row += g.data.iter().map(|d| d.tokens.len()).sum::<usize>();
            Group { rows: start..row, adapter: g.adapter.clone() }
        })
        .collect()
}

fn targets_of(data: &[&PreparedDatum]) -> Targets {
    let mut targets = Targets { offsets: vec![0], ids: Vec::new() };
    for datum in data {
        for row in datum.targets.chunks(datum.k.max(1)) {
            targets.ids.extend_from_slice(row);
            targets.offsets.push(targets.ids.len());
        }
    }
    targets
}

type Outputs = Vec<Result<Vec<TrainOutput>, OpError>>;

/// Losses per group, and the gradient by every target's log-probability (zero where nothing is trained).
fn losses(groups: &[TrainGroup<'_>], logprobs: &[f32]) -> (Outputs, Vec<f32>) {
    let mut dlogprobs = vec![0f32; logprobs.len()];
    let mut at = 0;
    let outputs = groups
        .iter()
        .map(|group| {
            let start = at;
            let mut outputs = Vec::with_capacity(group.data.len());
            let mut failure = None;
            for datum in &group.data {
                let range = at..at + datum.targets.len();
                at = range.end;
                match evaluate(&group.loss, datum, &logprobs[range.clone()]) {
                    Ok(value) => {
                        if group.grads.is_some() {
                            dlogprobs[range.clone()].copy_from_slice(&value.dlogprobs);
                        }
                        outputs.push(TrainOutput { logprobs: logprobs[range].to_vec(), value });
                    }
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            match failure {
                Some(error) => {
                    dlogprobs[start..at].fill(0.0);
                    Err(error)
                }
                None => Ok(outputs),
            }
        })
        .collect();
    (outputs, dlogprobs)
}

impl Active {
    fn of(groups: &[Group], targets: &Targets, dlogprobs: &[f32]) -> Self {
        let mut active = Self {
            rows: Vec::new(),
            targets: Targets { offsets: vec![0], ids: Vec::new() },
            dlogprobs: Vec::new(),
            groups: Vec::new(),
        };
        for group in groups {
            let start = active.rows.len();
            for row in group.rows.clone() {
                let at = targets.offsets[row]..targets.offsets[row + 1];
                if dlogprobs[at.clone()].iter().any(|d| *d != 0.0) {
                    active.rows.push(row);
                    active.targets.ids.extend_from_slice(&targets.ids[at.clone()]);
                    active.targets.offsets.push(active.targets.ids.len());
                    active.dlogprobs.extend_from_slice(&dlogprobs[at]);
                }
            }
            active.groups.push(Group { rows: start..active.rows.len(), adapter: group.adapter.clone() });
        }
        active
    }
}

/// Gradient by the residual stream after the last block, `dx`, and those of the head's parameters.
fn head_backward(
    cpu: &Cpu,
    w: &Weights,
    scored: &ScoredRows<'_>,
    x: &[f32],
    active: &Active,
    lse: &[f32],
    logits: Option<&[f32]>,
    sinks: &mut [Option<&mut Gradients>],
    full: bool,
    dx: &mut [f32],
) {
    let hidden = w.config.hidden_size;
    let gather = |from: &[f32]| {
        let mut rows = cpu.buffer(active.rows.len() * hidden);
        for (to, r) in rows.chunks_exact_mut(hidden).zip(&active.rows) {
            to.copy_from_slice(&from[r * hidden..(r + 1) * hidden]);
        }
        rows
    };
    let rows = ScoredRows::from_hidden(cpu, w, gather(&scored.hidden), &active.groups);
    let groups = rows.head_groups(Some(cpu));
    let kept = |rows: Range<usize>| logits.map(|logits| KeptLogits { logits, rows: &active.rows[rows] });
    let head = rows.head(&groups, kept(0..active.rows.len()));
    let mut dhidden = cpu.zeros(rows.hidden.len());
    let mut dz = vec![0f32; rows.z_len()];
    let wt = w.head.transposed(cpu);
    head.backward(cpu, wt, &active.targets, &active.dlogprobs, lse, &mut dhidden, &mut dz);
    for (i, group) in active.groups.iter().enumerate() {
        let Some(grads) = sinks[i].as_deref_mut() else { continue };
        if full {
            let out = &mut grads[w.layout.head];
            head.weight_gradient(cpu, &active.targets, &active.dlogprobs, lse, &rows.hidden, hidden, out);
        }
        let Some(own) = unembedding(i, group) else { continue };
        let at = groups[i].dz_at;
        let mut dz = dz[at..at + group.rows.len() * own.adapter.rank].to_vec();
        scale(&mut dz, own.adapter.scale);
        let own_logits = kept(group.rows.clone());
        unembed_gradient(cpu, w, group, &rows, i, active, lse, own_logits, &mut grads[own.pair.place + 1]);
        let downs = [Down { adapted: own, z: None, dz }];
        pair_gradients(cpu, &downs, &rows.hidden, hidden, &[], 0, sinks);
        backward_down(cpu, None, &downs, hidden, &mut dhidden);
    }
    let mut dx_active = cpu.zeros(dhidden.len());
    let dw = match (full, sinks.first_mut()) {
        (true, Some(Some(grads))) => Some(grads[w.layout.norm].as_mut_slice()),
        _ => None,
    };
    rms_norm_backward(cpu, &gather(x), &w.norm, w.config.rms_norm_eps, &dhidden, &mut dx_active, dw);
    for (row, d) in active.rows.iter().zip(dx_active.chunks_exact(hidden)) {
        dx[row * hidden..(row + 1) * hidden].copy_from_slice(d);
    }
}

/// Gradient of an adapter's B on the unembedding: over the group's own rows alone.
fn unembed_gradient(
    cpu: &Cpu,
    w: &Weights,
    group: &Group,
    rows: &ScoredRows<'_>,
    index: usize,
    active: &Active,
    lse: &[f32],
    kept: Option<KeptLogits<'_>>,
    out: &mut [f32],
) {
    let (hidden, r) = (w.config.hidden_size, group.rows.clone());
    let own = [Group { rows: 0..r.len(), adapter: group.adapter.clone() }];
    let own_rows = ScoredRows::from_hidden(cpu, w, cpu.copy(&rows.hidden[r.start * hidden..r.end * hidden]), &own);
    let groups = own_rows.head_groups(None);
    let at = active.targets.offsets[r.start]..active.targets.offsets[r.end];
    let targets = Targets {
        offsets: active.targets.offsets[r.start..=r.end].iter().map(|o| o - at.start).collect(),
        ids: active.targets.ids[at.clone()].to_vec(),
    };
    let rank = group.adapter.as_ref().map_or(0, |a| a.rank);
    let head = own_rows.head(&groups, kept);
    head.weight_gradient(cpu, &targets, &active.dlogprobs[at], &lse[r], rows.z(index), rank, out);
}
