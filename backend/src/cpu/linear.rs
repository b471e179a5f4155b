//! Linear layers with LoRA adapters, forward and backward, in as few parallel regions as possible. Each group of rows has
//! an adapter of its own.

use std::ops::{Deref, Range};

use super::Cpu;
use super::buffer::Buffer;
#[cfg(target_arch = "x86_64")]
use super::elementwise::gated_row;
use super::elementwise::{activate, add_bias, add_column_sums, scale};
#[cfg(target_arch = "x86_64")]
use super::gemm::run_gated_gemm;
use super::gemm::{
    Gemm, GemmRhs, GradientSide, LowRankUpdate, PackedLhs, RowsView, SumStart, WeightGradient, add_low_rank,
    add_weight_gradients, matmul, run_gemms,
};
use super::operands::{Operand, OutputGradient, WeightInput};
use super::packed::NR;
use super::param_sum::ParamSum;
use super::rows::HostRows;
use crate::host::HostParams;
use crate::{Activation, GradientSlot, LinearCall, LoraSegment, Rows, WeightPart};

/// Low-rank rows by segment, `[rows of the segment, rank]`; in backward passes empty for segments that do not train.
pub(super) type LowRankRows = Vec<Buffer<f32>>;

type Segment<'a> = LoraSegment<'a, Cpu>;

/// `z = scale · (x Aᵀ)` of every segment.
pub(super) fn lora_project(cpu: &Cpu, x: &PackedLhs, lora: &[Segment<'_>]) -> LowRankRows {
    let mut zs: LowRankRows = lora.iter().map(|s| cpu.buffer(s.rows.len() * s.rank)).collect();
    let gemms = lora.iter().zip(&mut zs).map(|(s, out)| Gemm {
        x,
        rows: s.rows.clone(),
        x_k: 0,
        w: s.a.packed().into(),
        out,
        start: SumStart::Zero,
        low_rank: Vec::new(),
        bias: None,
    });
    run_gemms(cpu, &mut gemms.collect::<Vec<_>>());
    lora.iter().zip(&mut zs).for_each(|(s, z)| scale(z, s.scale));
    zs
}

/// `out = residual + x Wᵀ`, then `z Bᵀ` of every segment on its columns, then the bias.
pub(super) fn forward(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    x: &PackedLhs,
    residual: Option<&HostRows>,
    out: &mut HostRows,
) -> LowRankRows {
    forward_with(cpu, call, x, residual, out, None).0
}

/// Computes [`forward`] without a residual for gate then up, or only up, and [`activate`] of the output.
pub(super) fn forward_activated(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    x: &PackedLhs,
    activation: Activation,
    out: &mut HostRows,
) -> (LowRankRows, PackedLhs) {
    let (zs, act) = forward_with(cpu, call, x, None, out, Some(activation));
    let width = activation.outputs(out.width());
    (zs, act.unwrap_or_else(|| activate(cpu, activation, out, width)))
}

/// [`forward`]; and the activated output, where one is asked for and it can be computed on the way.
fn forward_with(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    x: &PackedLhs,
    residual: Option<&HostRows>,
    out: &mut HostRows,
    activation: Option<Activation>,
) -> (LowRankRows, Option<PackedLhs>) {
    let (w, lora) = (call.weight.packed(), call.lora);
    let zs = lora_project(cpu, x, lora);
    let lhs = |(s, z): (&Segment<'_>, &Buffer<f32>)| PackedLhs::small(cpu, s.b.packed().dtype(), z, s.rank);
    let lhs: Vec<_> = lora.iter().zip(&zs).map(lhs).collect();
    let updates = lora.iter().zip(&lhs).map(|(s, z)| LowRankUpdate {
        rows: s.rows.clone(),
        at: s.column,
        terms: vec![(z, s.b.packed().into())],
    });
    let (aligned, others): (Vec<_>, Vec<_>) = updates.partition(|update| update.at.is_multiple_of(NR));
    let out = &mut out[..x.rows() * w.n()];
    let start = residual.map_or(SumStart::Zero, |residual| SumStart::Of(residual));
    let bias = call.bias.map(|bias| &bias[..]).filter(|_| others.is_empty());
    let mut gemm = Gemm { x, rows: 0..x.rows(), x_k: 0, w: w.into(), out: &mut *out, start, low_rank: aligned, bias };
    let activation = activation.filter(|_| others.is_empty());
    let activated = activation.and_then(|activation| run_activated(cpu, &mut gemm, activation));
    if activated.is_none() {
        run_gemms(cpu, &mut [gemm]);
    }
    if !others.is_empty() {
        add_low_rank(cpu, out, w.n(), &others);
        if let Some(bias) = call.bias {
            add_bias(cpu, out, bias);
        }
    }
    (zs, activated)
}

/// Runs a GEMM together with the activation of its output; `None` without doing anything where kernels can't.
fn run_activated(cpu: &Cpu, gemm: &mut Gemm<'_>, activation: Activation) -> Option<PackedLhs> {
    #[cfg(target_arch = "x86_64")]
    return gated_row(activation).and_then(|act| run_gated_gemm(cpu, gemm, act));
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (cpu, gemm, activation);
        None
    }
}

/// `dx = dy W`, then `dz A` of the segments that train. Returns `dz`, the gradient with respect to the unscaled `x Aᵀ`.
pub(super) fn backward(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    dy: &OutputGradient<'_>,
    dx: &mut HostRows,
) -> LowRankRows {
    let w = call.weight.transposed(cpu);
    if call.lora.is_empty() {
        matmul(cpu, &dy.lhs, w, dx, false);
        return Vec::new();
    }
    let dzs = d_lora_project(cpu, dy, call.lora);
    d_input(cpu, Some((&dy.lhs, w)), call.lora, &dzs, dx);
    dzs
}

/// `dz = scale · (dy B)`, the gradient with respect to the unscaled `x Aᵀ`, of every segment that trains.
fn d_lora_project(cpu: &Cpu, dy: &OutputGradient<'_>, lora: &[Segment<'_>]) -> LowRankRows {
    let (lhs, dy) = (&dy.lhs, dy.rows());
    let len = |s: &Segment<'_>| if s.trains { s.rows.len() * s.rank } else { 0 };
    let mut dzs: LowRankRows = lora.iter().map(|s| cpu.buffer(len(s))).collect();
    // The left side may be stored in groups of columns, so a segment that begins within one is packed by itself.
    let (stride, dtype) = (lhs.k(), cpu.dtype);
    let own = |s: &Segment<'_>| {
        let columns = |row: usize| dy[row * stride + s.column..][..s.extents.0].iter().copied();
        let within = s.trains && !s.column.is_multiple_of(lhs.k_granule());
        within.then(|| PackedLhs::new(cpu, dtype, &s.rows.clone().flat_map(columns).collect::<Vec<_>>(), s.extents.0))
    };
    let own: Vec<Option<PackedLhs>> = lora.iter().map(own).collect();
    let gemms = lora.iter().zip(&own).zip(&mut dzs).filter(|((s, _), _)| s.trains).map(|((s, own), out)| {
        let (x, rows, x_k) = match own {
            Some(own) => (own, 0..s.rows.len(), 0),
            None => (lhs, s.rows.clone(), s.column),
        };
        Gemm { x, rows, x_k, w: s.b.transposed(cpu), out, start: SumStart::Zero, low_rank: Vec::new(), bias: None }
    });
    run_gemms(cpu, &mut gemms.collect::<Vec<_>>());
    lora.iter().zip(&mut dzs).for_each(|(s, dz)| scale(dz, s.scale));
    dzs
}

/// `dx = dy W` where `base` is (dy, W), then `dx += dz A` of every segment that trains, in order. The segments of a group, which have the same rows, are the terms of one update.
pub(super) fn d_input(
    cpu: &Cpu,
    base: Option<(&PackedLhs, GemmRhs<'_>)>,
    lora: &[Segment<'_>],
    dzs: &[impl Deref<Target = [f32]>],
    dx: &mut HostRows,
) {
    let trained: Vec<_> = lora.iter().zip(dzs).filter(|(s, _)| s.trains).collect();
    let lhs: Vec<_> = trained.iter().map(|(s, dz)| PackedLhs::small(cpu, s.a.packed().dtype(), dz, s.rank)).collect();
    let mut updates: Vec<(usize, LowRankUpdate<'_>)> = Vec::new();
    for ((s, _), lhs) in trained.iter().zip(&lhs) {
        let term = (lhs, s.a.transposed(cpu));
        match updates.iter_mut().find(|(group, _)| *group == s.group) {
            Some((_, update)) => update.terms.push(term),
            None => updates.push((s.group, LowRankUpdate { rows: s.rows.clone(), at: 0, terms: vec![term] })),
        }
    }
    let low_rank: Vec<_> = updates.into_iter().map(|(_, update)| update).collect();
    match base {
        Some((x, w)) => {
            let gemm = Gemm { x, rows: 0..x.rows(), x_k: 0, w, out: dx, start: SumStart::Zero, low_rank, bias: None };
            run_gemms(cpu, &mut [gemm]);
        }
        None => {
            let k = dx.width();
            add_low_rank(cpu, dx, k, &low_rank);
        }
    }
}

/// The parts of sequences that lie in `rows`, counted from its first row.
pub(super) fn runs_within(sequences: &[Range<usize>], rows: &Range<usize>) -> Vec<Range<usize>> {
    let clip = |run: &Range<usize>| run.start.max(rows.start)..run.end.min(rows.end);
    let inside = sequences.iter().map(clip).filter(|run| run.start < run.end);
    inside.map(|run| run.start - rows.start..run.end - rows.start).collect()
}

/// Inputs of the gradients of a segment's A and B.
pub(super) struct LoraPairGradient<'a, 's> {
    pub(super) segment: &'a Segment<'s>,
    /// `scale · (x Aᵀ)`; `None` where B's gradient is computed elsewhere.
    pub(super) z: Option<&'a [f32]>,
    /// Gradient with respect to the unscaled `x Aᵀ`.
    pub(super) dz: &'a [f32],
}

/// Adds the gradients of A and B of every segment whose group has a sink. `sequences` are the rows by sequence; each
/// sequence lies in one group.
pub(super) fn add_lora_pair_gradients(
    cpu: &Cpu,
    pairs: &[LoraPairGradient<'_, '_>],
    sequences: &[Range<usize>],
    x: Operand<'_>,
    dy: Operand<'_>,
    sinks: &mut [Option<&mut HostParams>],
) {
    let runs: Vec<Vec<Range<usize>>> = pairs.iter().map(|pair| runs_within(sequences, &pair.segment.rows)).collect();
    let mut sums: Vec<[Option<ParamSum>; 2]> = pairs
        .iter()
        .zip(&runs)
        .map(|(LoraPairGradient { segment: s, z, .. }, runs)| {
            let Some(grads) = sinks[s.group].as_deref_mut().filter(|_| s.trains) else { return [None, None] };
            let take = |(slot, len): (Option<GradientSlot>, usize)| {
                let GradientSlot { param, first } = slot?;
                Some(ParamSum::take(cpu, grads, param, first..first + len, runs))
            };
            let [a, b] = s.grads;
            [(a, s.rank * s.extents.1), (b.filter(|_| z.is_some()), s.extents.0 * s.rank)].map(take)
        })
        .collect();
    let mut gradients = Vec::new();
    for ((LoraPairGradient { segment: s, z, dz }, [a, b]), runs) in pairs.iter().zip(&mut sums).zip(&runs) {
        let rows = s.rows.clone();
        if let (Some(z), Some(b)) = (z, b) {
            let right = dy.part(rows.start, s.column..s.column + s.extents.0);
            let left = GradientSide::Rows(RowsView::dense(z, s.rank));
            gradients.push(WeightGradient { runs, left, right, transposed: true, out: b.out() });
        }
        if let Some(a) = a {
            let (left, right) = (GradientSide::Rows(RowsView::dense(dz, s.rank)), x.part(rows.start, 0..x.width));
            gradients.push(WeightGradient { runs, left, right, transposed: false, out: a.out() });
        }
    }
    add_weight_gradients(cpu, &mut gradients);
    drop(gradients);
    for (pair, sums) in pairs.iter().zip(sums) {
        let Some(grads) = sinks[pair.segment.group].as_deref_mut() else { continue };
        // SAFETY: a gradient was computed for each.
        sums.into_iter().flatten().for_each(|sum| unsafe { sum.put(grads) });
    }
}

/// Adds the gradients of A and B of the segments that train.
pub(super) fn lora_gradients(
    cpu: &Cpu,
    lora: &[Segment<'_>],
    sequences: &[Range<usize>],
    x: &WeightInput<'_>,
    dy: &OutputGradient<'_>,
    [zs, dzs]: [&LowRankRows; 2],
    sinks: &mut [Option<&mut HostParams>],
) {
    let trained = lora.iter().zip(zs.iter().zip(dzs)).filter(|(s, _)| s.trains);
    let pairs: Vec<_> =
        trained.map(|(segment, (z, dz))| LoraPairGradient { segment, z: Some(&z[..]), dz: &dz[..] }).collect();
    add_lora_pair_gradients(cpu, &pairs, sequences, x.operand(), dy.operand(), sinks);
}

/// `dW += dyᵀ x` and `db += Σ dy` for every part.
pub(super) fn weight_gradients(
    cpu: &Cpu,
    parts: &[WeightPart],
    sequences: &[Range<usize>],
    x: &WeightInput<'_>,
    dy: &OutputGradient<'_>,
    grads: &mut HostParams,
) {
    let (right, left) = (x.operand(), dy.operand());
    let take = |part: &WeightPart| ParamSum::take(cpu, grads, part.weight, 0..part.outputs * right.width, sequences);
    let mut sums: Vec<ParamSum> = parts.iter().map(take).collect();
    let gradients = parts.iter().zip(&mut sums).map(|(part, sum)| {
        let left = left.part(0, part.column..part.column + part.outputs);
        let right = right.part(0, 0..right.width);
        WeightGradient { runs: sequences, left, right, transposed: false, out: sum.out() }
    });
    add_weight_gradients(cpu, &mut gradients.collect::<Vec<_>>());
    for (part, sum) in parts.iter().zip(sums) {
        // SAFETY: its gradient was computed.
        unsafe { sum.put(grads) };
        if let Some(bias) = part.bias {
            add_column_sums(cpu, left.rows, left.width, part.column, &mut grads[bias]);
        }
    }
}
