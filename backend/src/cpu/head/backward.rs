//! Gradients of the loss head.

use std::ops::Range;

use super::super::Cpu;
use super::super::gemm::{
    GemmRhs, GradientOut, GradientSide, PackedLhs, RowsView, WeightGradient, add_weight_gradient, matmul_block,
};
use super::super::parallel::{SharedPtr, par_chunks};
use super::super::vexp::{exp, multiversion};
use super::{CHUNK, Head, HeadRowGroup, ROWS, RowBlock, SavedLogits};
use crate::Targets;

impl Head<'_> {
    /// Adds the gradient with respect to the hidden states to `dx[rows, hidden]` and, where a group has an adapter, that
    /// with respect to its scaled `z` to `dz` from the group's `dz_at` on. `wt` is the transposed unembedding; `d_logprobs`
    /// are gradients with respect to the targets' log-probabilities.
    pub(in crate::cpu) fn backward<'w>(
        &self,
        cpu: &Cpu,
        wt: impl Into<GemmRhs<'w>>,
        targets: &Targets,
        d_logprobs: &[f32],
        lse: &[f32],
        dx: &mut [f32],
        dz: &mut [f32],
    ) {
        let (wt, hidden) = (wt.into(), self.w.k());
        let has_transpose = |group: &HeadRowGroup<'_>| group.adapter.is_none_or(|adapter| adapter.b_t.is_some());
        assert!(self.groups.iter().all(has_transpose), "the adapter has no transpose");
        let blocks = self.blocks(cpu, targets);
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
                self.d_logits(cpu, block, columns.clone(), targets, d_logprobs, lse, d);
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
        targets: &Targets,
        d_logprobs: &[f32],
        lse: &[f32],
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
                self.d_logits(cpu, block, columns.clone(), targets, d_logprobs, lse, d);
                let (left, right) =
                    (RowsView::dense(d, columns.len()), RowsView::dense(&right[rows.start * width..], width));
                let (left, right) = (GradientSide::Rows(left), GradientSide::Rows(right));
                let gradient = WeightGradient { runs, left, right, transposed: false, out: GradientOut::Add(out) };
                add_weight_gradient(cpu, gradient);
            }
        });
    }

    /// Writes the gradient with respect to the logits of a block in a chunk, `out[rows, columns]`: `d_logprobs` of a row's
    /// targets minus their sum times the softmax.
    fn d_logits(
        &self,
        cpu: &Cpu,
        block: &RowBlock<'_>,
        columns: Range<usize>,
        targets: &Targets,
        d_logprobs: &[f32],
        lse: &[f32],
        out: &mut [f32],
    ) {
        let width = columns.len();
        if self.saved.is_none() {
            self.logits(cpu, block, columns.clone(), out, width);
        }
        for (row, out) in block.rows.clone().zip(out.chunks_exact_mut(width)) {
            let at = targets.offsets[row]..targets.offsets[row + 1];
            let total: f32 = d_logprobs[at.clone()].iter().sum();
            match self.saved {
                Some(SavedLogits { logits, rows }) => {
                    let saved_rows = logits.len() / self.vocab;
                    let logits = &logits[saved_rows * columns.start + rows[row] * width..][..width];
                    scaled_softmax(cpu.isa(), logits, lse[row], -total, out);
                }
                None => scaled_softmax_in_place(cpu.isa(), out, lse[row], -total),
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
