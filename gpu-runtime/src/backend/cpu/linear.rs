//! Linear layers with LoRA adapters, forward and backward, in as few parallel regions as possible. Each group of rows has
//! an adapter of its own.

use std::ops::Deref;

use super::Cpu;
use super::buffer::Buffer;
use super::elementwise::{add_bias, add_column_sums, scale};
use super::gemm::{
    Gemm, GemmRhs, LowRankUpdate, PackedLhs, RowsView, WeightGradient, add_low_rank, add_weight_gradients, matmul,
    run_gemms,
};
use super::packed::NR;
use super::rows::HostRows;
use crate::backend::host::HostParams;
use crate::backend::{LinearCall, LoraSegment, Rows, WeightPart};

/// By segment, `[rows of the segment, rank]`; empty for segments that do not train, in backward passes.
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
        accumulate: false,
        low_rank: Vec::new(),
    });
    run_gemms(cpu, &mut gemms.collect::<Vec<_>>());
    lora.iter().zip(&mut zs).for_each(|(s, z)| scale(z, s.scale));
    zs
}

/// `out (+)= x Wᵀ`, then `z Bᵀ` of every segment on its columns, then the bias.
pub(super) fn forward(
    cpu: &Cpu,
    call: &LinearCall<'_, Cpu>,
    x: &PackedLhs,
    out: &mut HostRows,
    accumulate: bool,
) -> LowRankRows {
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
    let gemm = Gemm { x, rows: 0..x.rows(), x_k: 0, w: w.into(), out: &mut *out, accumulate, low_rank: aligned };
    run_gemms(cpu, &mut [gemm]);
    if !others.is_empty() {
        add_low_rank(cpu, out, w.n(), &others);
    }
    if let Some(bias) = call.bias {
        add_bias(cpu, out, bias);
    }
    zs
}

/// `dx = dy W`, then `dz A` of the segments that train. Returns `dz`, the gradient with respect to the unscaled `x Aᵀ`.
pub(super) fn backward(cpu: &Cpu, call: &LinearCall<'_, Cpu>, dy: &HostRows, dx: &mut HostRows) -> LowRankRows {
    let lhs = PackedLhs::new(cpu, call.weight.packed().dtype(), dy, dy.width());
    let w = call.weight.transposed(cpu);
    if call.lora.is_empty() {
        matmul(cpu, &lhs, w, dx, false);
        return Vec::new();
    }
    let dzs = d_lora_project(cpu, &lhs, dy, call.lora);
    d_input(cpu, Some((&lhs, w)), call.lora, &dzs, dx);
    dzs
}

/// `dz = scale · (dy B)`, the gradient with respect to the unscaled `x Aᵀ`, of every segment that trains; `lhs` is `dy`.
fn d_lora_project(cpu: &Cpu, lhs: &PackedLhs, dy: &[f32], lora: &[Segment<'_>]) -> LowRankRows {
    let len = |s: &Segment<'_>| if s.trains { s.rows.len() * s.rank } else { 0 };
    let mut dzs: LowRankRows = lora.iter().map(|s| cpu.buffer(len(s))).collect();
    // The left side may be stored in pairs of columns, so a segment that begins at an odd column is packed by itself.
    let (stride, dtype) = (lhs.k(), cpu.dtype);
    let own = |s: &Segment<'_>| {
        let columns = |row: usize| dy[row * stride + s.column..][..s.extents.0].iter().copied();
        let odd = s.trains && !s.column.is_multiple_of(2);
        odd.then(|| PackedLhs::new(cpu, dtype, &s.rows.clone().flat_map(columns).collect::<Vec<_>>(), s.extents.0))
    };
    let own: Vec<Option<PackedLhs>> = lora.iter().map(own).collect();
    let gemms = lora.iter().zip(&own).zip(&mut dzs).filter(|((s, _), _)| s.trains).map(|((s, own), out)| {
        let (x, rows, x_k) = match own {
            Some(own) => (own, 0..s.rows.len(), 0),
            None => (lhs, s.rows.clone(), s.column),
        };
        Gemm { x, rows, x_k, w: s.b.transposed(cpu), out, accumulate: false, low_rank: Vec::new() }
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
            let gemm = Gemm { x, rows: 0..x.rows(), x_k: 0, w, out: dx, accumulate: false, low_rank };
            run_gemms(cpu, &mut [gemm]);
        }
        None => {
            let k = dx.width();
            add_low_rank(cpu, dx, k, &low_rank);
        }
    }
}

/// What the gradients of a segment's A and B are computed from.
pub(super) struct LoraPairGradient<'a, 's> {
    pub(super) segment: &'a Segment<'s>,
    /// `scale · (x Aᵀ)`; `None` where B's gradient is computed elsewhere.
    pub(super) z: Option<&'a [f32]>,
    /// Gradient with respect to the unscaled `x Aᵀ`.
    pub(super) dz: &'a [f32],
}

/// Adds the gradients of A and B of every segment whose group has a sink. `x` has rows of `k`, `dy` of `n` elements.
pub(super) fn add_lora_pair_gradients(
    cpu: &Cpu,
    pairs: &[LoraPairGradient<'_, '_>],
    (x, k): (&[f32], usize),
    (dy, n): (&[f32], usize),
    sinks: &mut [Option<&mut HostParams>],
) {
    // Moved out of the sinks, so that threads can write several gradients of a group at once.
    let mut outs: Vec<[Vec<f32>; 2]> = pairs
        .iter()
        .map(|pair| match sinks[pair.segment.group].as_deref_mut().filter(|_| pair.segment.trains) {
            Some(grads) => [0, 1].map(|i| std::mem::take(&mut grads[pair.segment.param + i])),
            None => Default::default(),
        })
        .collect();
    let mut gradients = Vec::new();
    for (LoraPairGradient { segment: s, z, dz }, [a, b]) in pairs.iter().zip(&mut outs) {
        if a.is_empty() {
            continue;
        }
        let rows = s.rows.clone();
        if let Some(z) = z {
            let right = RowsView { data: &dy[rows.start * n + s.column..], stride: n, width: s.extents.0 };
            let left = RowsView::dense(z, s.rank);
            gradients.push(WeightGradient { rows: rows.len(), left, right, transposed: true, out: b });
        }
        let (left, right) = (RowsView::dense(dz, s.rank), RowsView::dense(&x[rows.start * k..], k));
        gradients.push(WeightGradient { rows: rows.len(), left, right, transposed: false, out: a });
    }
    add_weight_gradients(cpu, &mut gradients);
    drop(gradients);
    for (pair, [a, b]) in pairs.iter().zip(outs) {
        if let Some(grads) = sinks[pair.segment.group].as_deref_mut().filter(|_| pair.segment.trains) {
            grads[pair.segment.param] = a;
            grads[pair.segment.param + 1] = b;
        }
    }
}

/// Adds the gradients of A and B of the segments that train.
pub(super) fn lora_gradients(
    cpu: &Cpu,
    lora: &[Segment<'_>],
    x: &HostRows,
    dy: &HostRows,
    [zs, dzs]: [&LowRankRows; 2],
    sinks: &mut [Option<&mut HostParams>],
) {
    let trained = lora.iter().zip(zs.iter().zip(dzs)).filter(|(s, _)| s.trains);
    let pairs: Vec<_> =
        trained.map(|(segment, (z, dz))| LoraPairGradient { segment, z: Some(&z[..]), dz: &dz[..] }).collect();
    add_lora_pair_gradients(cpu, &pairs, (x, x.width()), (dy, dy.width()), sinks);
}

/// `dW += dyᵀ x` and `db += Σ dy` for every part.
pub(super) fn weight_gradients(cpu: &Cpu, parts: &[WeightPart], x: &HostRows, dy: &HostRows, grads: &mut HostParams) {
    let (rows, n, k) = (dy.rows(), dy.width(), x.width());
    for part in parts {
        let left = RowsView { data: &dy[part.column..], stride: n, width: part.outputs };
        let out = &mut grads[part.weight];
        add_weight_gradients(
            cpu,
            &mut [WeightGradient { rows, left, right: RowsView::dense(x, k), transposed: false, out }],
        );
        if let Some(bias) = part.bias {
            add_column_sums(cpu, dy, n, part.column, &mut grads[bias]);
        }
    }
}
