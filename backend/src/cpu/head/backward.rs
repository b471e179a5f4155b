//! Gradients of the loss head.

use std::ops::Range;

use super::super::Cpu;
use super::super::gemm::{
    GemmRhs, GradientOut, GradientSide, PackedLhs, RowsView, WeightGradient, add_weight_gradient, matmul_block,
};
use super::super::parallel::{SharedPtr, par_chunks};
use super::super::vexp::{exp, multiversion};
use super::reference::{ReferenceChunk, ReferenceHead};
use super::{CHUNK, Head, HeadRowGroup, ROWS, RowBlock};
use crate::{EntropyGradient, Targets};

/// Gradients of the loss with respect to what the head computed for its rows, and the state that they need.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct RowGradients<'a> {
    pub targets: &'a Targets,
    /// Gradients with respect to the targets' log-probabilities.
    pub d_logprobs: &'a [f32],
    /// Log-sum-exp of each row.
    pub lse: &'a [f32],
    pub entropy: Option<EntropyGradient<'a>>,
    pub divergence: Option<RowDivergences<'a>>,
}

/// Divergences of rows from those of a reference, and the gradient with respect to each of them.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct RowDivergences<'a> {
    pub reference: &'a ReferenceHead<'a>,
    pub divergences: &'a [f32],
    pub d_divergences: &'a [f32],
}

/// The terms of a row's gradient that all its logits have in common.
#[derive(Clone, Copy)]
struct LogitTerms {
    lse: f32,
    /// Sum of the gradients with respect to the targets' log-probabilities, negated.
    scale: f32,
    /// Entropy of the row, and minus the gradient with respect to it.
    entropy: f32,
    d_entropy: f32,
}

impl Head<'_> {
    /// Adds the gradient with respect to the hidden states to `dx[rows, hidden]` and, where a group has an adapter, that
    /// with respect to its scaled `z` to `dz` from the group's `dz_at` on. `wt` is the transposed unembedding.
    pub(in crate::cpu) fn backward<'w>(
        &self,
        cpu: &Cpu,
        wt: impl Into<GemmRhs<'w>>,
        gradients: RowGradients<'_>,
        dx: &mut [f32],
        dz: &mut [f32],
    ) {
        let (wt, hidden) = (wt.into(), self.w.k());
        let has_transpose = |group: &HeadRowGroup<'_>| group.adapter.is_none_or(|adapter| adapter.b_t.is_some());
        assert!(self.groups.iter().all(has_transpose), "the adapter has no transpose");
        let blocks = self.blocks(cpu, gradients.targets);
        let (dx_len, dz_len) = (dx.len(), dz.len());
        let (dx, dz) = (SharedPtr(dx.as_mut_ptr()), SharedPtr(dz.as_mut_ptr()));
        cpu.pool.run(blocks.len(), |i| {
            let block = &blocks[i];
            let rows = block.rows.clone();
            let z_len = rows.len() * block.adapter.map_or(0, |(a, _)| a.rank);
            assert!(rows.end * hidden <= dx_len && block.dz_at + z_len <= dz_len);
            // SAFETY: in bounds; blocks have disjoint rows and parts of `dz`.
            let (dx, dz) = unsafe {
                (
                    std::slice::from_raw_parts_mut(dx.ptr().add(rows.start * hidden), rows.len() * hidden),
                    std::slice::from_raw_parts_mut(dz.ptr().add(block.dz_at), z_len),
                )
            };
            let mut logits = cpu.buffer(rows.len() * CHUNK);
            for columns in self.chunks() {
                let width = columns.len();
                let d = &mut logits[..rows.len() * width];
                self.d_logits(cpu, block, columns.clone(), gradients, d);
                let mut lhs = PackedLhs::empty(cpu, wt.dtype(), rows.len(), width);
                lhs.fill(cpu, d);
                matmul_block(cpu, &lhs, 0..rows.len(), wt, 0..hidden, columns.clone(), dx, hidden, true);
                if let Some((a, _)) = block.adapter
                    && let Some(b_t) = a.b_t
                {
                    matmul_block(cpu, &lhs, 0..rows.len(), b_t, 0..a.rank, columns, dz, a.rank, true);
                }
            }
        });
    }

    /// Adds `d_logitsᵀ · right` to `out[vocabulary, width]`: the gradient with respect to the unembedding (`right` are the
    /// hidden states) or to B of an adapter (`right` is its scaled `z`). Rows are summed in order, sequence by sequence. What
    /// `out` has beyond the vocabulary stays.
    pub(in crate::cpu) fn weight_gradient(
        &self,
        cpu: &Cpu,
        gradients: RowGradients<'_>,
        sequences: &[Range<usize>],
        right: &[f32],
        width: usize,
        out: &mut [f32],
    ) {
        let chunks: Vec<_> = self.chunks().collect();
        let blocks = self.blocks_by_sequence(sequences);
        par_chunks(&cpu.pool, &mut out[..self.vocab * width], CHUNK * width, |i, out| {
            let columns = chunks[i].clone();
            let mut logits = cpu.buffer(ROWS * columns.len());
            for (block, runs) in &blocks {
                let rows = block.rows.clone();
                let d = &mut logits[..rows.len() * columns.len()];
                self.d_logits(cpu, block, columns.clone(), gradients, d);
                let (left, right) =
                    (RowsView::dense(d, columns.len()), RowsView::dense(&right[rows.start * width..], width));
                let (left, right) = (GradientSide::Rows(left), GradientSide::Rows(right));
                let gradient = WeightGradient { runs, left, right, transposed: false, out: GradientOut::Add(out) };
                add_weight_gradient(cpu, gradient);
            }
        });
    }

    /// Writes the gradient with respect to the logits of a block in a chunk, `out[rows, columns]`: `d_logprobs` of a row's
    /// targets minus their sum times the softmax p, minus the gradient of the row's entropy H times `p (ln p + H)`, and plus that
    /// of its divergence D from q times `p (ln p - ln q - D)`.
    fn d_logits(
        &self,
        cpu: &Cpu,
        block: &RowBlock<'_>,
        columns: Range<usize>,
        gradients: RowGradients<'_>,
        out: &mut [f32],
    ) {
        let RowGradients { targets, d_logprobs, lse, entropy, divergence } = gradients;
        let width = columns.len();
        if self.saved.is_none() {
            self.logits(cpu, block, columns.clone(), out, width);
        }
        let others = divergence.map(|of| {
            let mut others = cpu.buffer(block.rows.len() * width);
            of.reference.logits(cpu, block.rows.clone(), columns.clone(), &mut others);
            others
        });
        for ((index, row), out) in block.rows.clone().enumerate().zip(out.chunks_exact_mut(width)) {
            let at = targets.offsets[row]..targets.offsets[row + 1];
            let total: f32 = d_logprobs[at.clone()].iter().sum();
            let saved = self.saved.map(|saved| saved.chunk(row, &columns, self.vocab));
            let of_entropy = entropy.and_then(|entropy| entropy.of(row));
            let of_divergence = divergence.filter(|of| of.d_divergences[row] != 0.0).zip(others.as_deref());
            match (saved, of_entropy, of_divergence) {
                (Some(logits), None, None) => scaled_softmax(cpu.isa(), logits, lse[row], -total, out),
                (None, None, None) => scaled_softmax_in_place(cpu.isa(), out, lse[row], -total),
                (saved, of_entropy, of_divergence) => {
                    saved.into_iter().for_each(|logits| out.copy_from_slice(logits));
                    let (entropy, d_entropy) = of_entropy.unwrap_or_default();
                    let terms = LogitTerms { lse: lse[row], scale: -total, entropy, d_entropy: -d_entropy };
                    match of_divergence {
                        None => softmax_with_entropy(cpu.isa(), out, terms),
                        Some((of, others)) => {
                            let other = of.reference.chunk(row, &others[index * width..(index + 1) * width]);
                            let [divergence, d] = [of.divergences[row], of.d_divergences[row]];
                            softmax_with_divergence(cpu.isa(), out, terms, other, divergence, d);
                        }
                    }
                }
            }
            for t in at {
                let id = targets.ids[t] as usize;
                if columns.contains(&id) {
                    out[id - columns.start] += d_logprobs[t];
                }
            }
        }
    }
}

multiversion! {
    /// `scale · exp(x - lse)`: the softmax of a row of logits, scaled.
    fn scaled_softmax(x: &[f32], lse: f32, scale: f32, out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = exp(x - lse) * scale;
        }
    }
}

multiversion! {
    fn scaled_softmax_in_place(x: &mut [f32], lse: f32, scale: f32) {
        for x in x {
            *x = exp(*x - lse) * scale;
        }
    }
}

multiversion! {
    /// `p (scale + d_entropy (ln p + entropy))` of a row of logits, with p their softmax.
    fn softmax_with_entropy(x: &mut [f32], terms: LogitTerms) {
        let LogitTerms { lse, scale, entropy, d_entropy } = terms;
        for x in x {
            // A logit of -inf has p = 0, and its term is 0 as well.
            let log = (*x - lse).max(f32::MIN);
            *x = exp(log) * (scale + d_entropy * (log + entropy));
        }
    }
}

multiversion! {
    /// What [`softmax_with_entropy`] computes, plus `p d (ln p - ln q - divergence)`, with q of the reference's row.
    fn softmax_with_divergence(x: &mut [f32], terms: LogitTerms, other: ReferenceChunk<'_>, divergence: f32, d: f32) {
        let LogitTerms { lse, scale, entropy, d_entropy } = terms;
        for (x, other_logit) in x.iter_mut().zip(other.logits) {
            let log = (*x - lse).max(f32::MIN);
            let other_log = (other_logit - other.lse).max(f32::MIN);
            *x = exp(log) * (scale + d_entropy * (log + entropy) + d * (log - other_log - divergence));
        }
    }
}
