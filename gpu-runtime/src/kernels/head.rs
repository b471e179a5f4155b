//! The loss head: log-probabilities of targets and their gradient, in chunks of the vocabulary. No
//! `[tokens, vocabulary]` matrix is kept unless it is small; else the backward computes logits again.

use std::ops::Range;

use super::gemm::{Factor, Gradient, Operand, Rows, add_gradient_block, matmul_block};
use super::packed::PackedMatrix;
use super::vexp::{exp, max, multiversion, sum_by};
use super::{Cpu, Shared};

/// Columns of a chunk of the vocabulary. Log-sum-exp combines chunks in order, so it is part of the result's bits.
const CHUNK: usize = 512;
/// Rows of a block.
const ROWS: usize = 264;

/// What a low-rank adapter adds to the logits of rows: `(alpha / rank) z Bᵀ`.
#[derive(Clone, Copy)]
pub struct HeadAdapter<'a> {
    /// Scaled `x Aᵀ`, `[rows, rank]`, of the group's rows.
    pub z: &'a [f32],
    /// B, `[vocabulary, rank]`.
    pub b: &'a PackedMatrix,
    /// Bᵀ, `[rank, vocabulary]`; only [`Head::backward`] needs it.
    pub b_t: Option<Factor<'a>>,
    /// Its rank.
    pub rank: usize,
}

/// Rows with the same adapter.
pub struct HeadGroup<'a> {
    /// Rows of the pass.
    pub rows: Range<usize>,
    /// Their adapter on the unembedding.
    pub adapter: Option<HeadAdapter<'a>>,
    /// Where the gradient by the group's `z` begins in [`Head::backward`]'s `dz`.
    pub dz_at: usize,
}

/// Targets of every row.
pub struct Targets {
    /// Row `i` has the targets `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<usize>,
    /// Token ids below the vocabulary's size.
    pub ids: Vec<u32>,
}

/// A pass's final hidden states and the unembedding.
pub struct Head<'a> {
    /// Normalised hidden states as an operand of `w`.
    pub x: &'a Operand,
    /// The unembedding `[vocabulary, hidden]`.
    pub w: &'a PackedMatrix,
    /// Rows by adapter, covering all rows in order.
    pub groups: &'a [HeadGroup<'a>],
    /// Logits that the forward pass kept: gradients take them from there.
    pub kept: Option<KeptLogits<'a>>,
}

/// Logits of a pass that was small enough to keep them.
#[derive(Clone, Copy)]
pub struct KeptLogits<'a> {
    /// `[rows of that pass, vocabulary]`.
    pub logits: &'a [f32],
    /// For each row of the head, its row there.
    pub rows: &'a [usize],
}

/// Running log-sum-exp of a row.
#[derive(Clone, Copy)]
struct LogSum {
    max: f32,
    sum: f32,
}

impl LogSum {
    const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };

    fn value(self) -> f32 {
        self.max + self.sum.ln()
    }
}

multiversion! {
    fn add_chunk(logits: &[f32], scale: f32, state: LogSum) -> LogSum {
        let top = max(logits) * scale;
        let sum = sum_by(logits, |x| exp(x * scale - top));
        if top == f32::NEG_INFINITY {
            return state;
        }
        if top > state.max {
            LogSum { max: top, sum: state.sum * exp(state.max - top) + sum }
        } else {
            LogSum { max: state.max, sum: state.sum + sum * exp(top - state.max) }
        }
    }
}

/// log Σ exp(scale · x) of a row of logits; with scale 1 the same bits as the loss head's.
pub fn log_sum_exp(cpu: &Cpu, logits: &[f32], scale: f32) -> f32 {
    logits.chunks(CHUNK).fold(LogSum::EMPTY, |state, chunk| add_chunk(cpu.isa(), chunk, scale, state)).value()
}

struct RowBlock<'a> {
    rows: Range<usize>,
    /// The block's adapter and the first element of its rows in `z`.
    adapter: Option<(HeadAdapter<'a>, usize)>,
    dz_at: usize,
}

impl<'a> Head<'a> {
    /// Blocks of rows that tasks may work on at once: their rows, targets and parts of `dz` are disjoint.
    fn blocks(&self, cpu: &Cpu, targets: &Targets) -> Vec<RowBlock<'a>> {
        let (mut row, mut z) = (0, 0);
        for group in self.groups {
            assert!(group.rows.start >= row && group.dz_at >= z, "groups overlap");
            row = group.rows.end.max(row);
            z = group.dz_at + group.rows.len() * group.adapter.map_or(0, |a| a.rank);
        }
        assert!(row <= self.x.rows(), "rows beyond the operand");
        assert!(row < targets.offsets.len(), "rows without targets");
        assert!(targets.offsets.is_sorted() && targets.offsets[row] <= targets.ids.len(), "targets overlap");
        let total: usize = self.groups.iter().map(|g| g.rows.len()).sum();
        // As many blocks of one height as threads can share evenly.
        let threads = cpu.pool.threads();
        let height = total.div_ceil(total.div_ceil(ROWS).next_multiple_of(threads).max(1)).max(6);
        let split = |group: &HeadGroup<'a>| {
            let (rows, adapter, dz_at) = (group.rows.clone(), group.adapter, group.dz_at);
            let starts = rows.clone().step_by(height);
            let block = move |r: usize| {
                let adapter = adapter.map(|a| (a, (r - rows.start) * a.rank));
                RowBlock {
                    rows: r..(r + height).min(rows.end),
                    adapter,
                    dz_at: dz_at + adapter.map_or(0, |(_, at)| at),
                }
            };
            starts.map(block).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(split).collect()
    }

    /// Logits of a block of rows for a chunk of the vocabulary, in rows of `stride` elements.
    fn logits(&self, cpu: &Cpu, block: &RowBlock<'_>, columns: Range<usize>, out: &mut [f32], stride: usize) {
        matmul_block(cpu, self.x, block.rows.clone(), self.w, columns.clone(), 0..self.w.k(), out, stride, false);
        if let Some((a, at)) = block.adapter {
            let rows = block.rows.len();
            let mut z = Operand::empty(cpu, a.b.dtype(), rows, a.rank);
            z.fill(cpu, &a.z[at..at + rows * a.rank]);
            matmul_block(cpu, &z, 0..rows, a.b, columns, 0..a.rank, out, stride, true);
        }
    }

    fn chunks(&self) -> impl Iterator<Item = Range<usize>> {
        let vocab = self.w.n();
        (0..vocab).step_by(CHUNK).map(move |start| start..(start + CHUNK).min(vocab))
    }

    /// Log-probabilities of the targets, and the log-sum-exp of every row. With `keep`, `[rows, vocabulary]`, the logits
    /// are left there.
    pub fn target_logprobs(&self, cpu: &Cpu, targets: &Targets, keep: Option<&mut [f32]>) -> (Vec<f32>, Vec<f32>) {
        let vocab = self.w.n();
        assert!(keep.as_ref().is_none_or(|keep| keep.len() >= self.x.rows() * vocab), "no room for the logits");
        let keep = keep.map(|keep| Shared(keep.as_mut_ptr()));
        let mut logprobs = vec![0f32; targets.ids.len()];
        let blocks = self.blocks(cpu, targets);
        let mut lse = vec![0f32; targets.offsets.len() - 1];
        let (out, sums) = (Shared(logprobs.as_mut_ptr()), Shared(lse.as_mut_ptr()));
        cpu.pool.run(blocks.len(), |i| {
            let rows = blocks[i].rows.clone();
            let at = targets.offsets[rows.start]..targets.offsets[rows.end];
            // SAFETY: blocks have disjoint rows and targets, which lie in their vectors.
            let (logprobs, lse) = unsafe {
                (
                    std::slice::from_raw_parts_mut(out.ptr().add(at.start), at.len()),
                    std::slice::from_raw_parts_mut(sums.ptr().add(rows.start), rows.len()),
                )
            };
            // SAFETY: blocks have disjoint rows, which the operand has, and `keep` has room for all of the operand's.
            let keep = keep.map(|keep| unsafe {
                std::slice::from_raw_parts_mut(keep.ptr().add(rows.start * vocab), rows.len() * vocab)
            });
            self.block_logprobs(cpu, &blocks[i], targets, logprobs, lse, keep);
        });
        (logprobs, lse)
    }

    fn block_logprobs(
        &self,
        cpu: &Cpu,
        block: &RowBlock<'_>,
        targets: &Targets,
        out: &mut [f32],
        lse: &mut [f32],
        keep: Option<&mut [f32]>,
    ) {
        let rows = block.rows.clone();
        let mut own = cpu.buffer(if keep.is_some() { 0 } else { rows.len() * CHUNK });
        let (logits, kept) = match keep {
            Some(keep) => (keep, true),
            None => (&mut own[..], false),
        };
        let mut states = vec![LogSum::EMPTY; rows.len()];
        let first = targets.offsets[rows.start];
        for columns in self.chunks() {
            let (at, stride) = if kept { (columns.start, self.w.n()) } else { (0, columns.len()) };
            self.logits(cpu, block, columns.clone(), &mut logits[at..], stride);
            for (row, (state, logits)) in rows.clone().zip(states.iter_mut().zip(logits[at..].chunks(stride))) {
                let logits = &logits[..columns.len()];
                *state = add_chunk(cpu.isa(), logits, 1.0, *state);
                for t in targets.offsets[row]..targets.offsets[row + 1] {
                    let id = targets.ids[t] as usize;
                    if columns.contains(&id) {
                        out[t - first] = logits[id - columns.start];
                    }
                }
            }
        }
        for (row, (lse, state)) in rows.zip(lse.iter_mut().zip(states)) {
            *lse = state.value();
            for t in targets.offsets[row]..targets.offsets[row + 1] {
                out[t - first] -= *lse;
            }
        }
    }

    /// Adds the gradient by the hidden states to `dx[rows, hidden]` and, where a group has an adapter, that
    /// by its scaled `z` to `dz` from the group's `dz_at` on.
    /// `wt` is the transposed unembedding; `dlogprobs` are gradients by the targets' log-probabilities.
    pub fn backward<'w>(
        &self,
        cpu: &Cpu,
        wt: impl Into<Factor<'w>>,
        targets: &Targets,
        dlogprobs: &[f32],
        lse: &[f32],
        dx: &mut [f32],
        dz: &mut [f32],
    ) {
        let (wt, hidden) = (wt.into(), self.w.k());
        let has_transpose = |group: &HeadGroup<'_>| group.adapter.is_none_or(|adapter| adapter.b_t.is_some());
        assert!(self.groups.iter().all(has_transpose), "an adapter without its transpose");
        let blocks = self.blocks(cpu, targets);
        let (dx_len, dz_len) = (dx.len(), dz.len());
        let (dx, dz) = (Shared(dx.as_mut_ptr()), Shared(dz.as_mut_ptr()));
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
                self.dlogits(cpu, block, columns.clone(), targets, dlogprobs, lse, d);
                let mut operand = Operand::empty(cpu, wt.dtype(), rows.len(), width);
                operand.fill(cpu, d);
                matmul_block(cpu, &operand, 0..rows.len(), wt, 0..hidden, columns.clone(), dx, hidden, true);
                if let Some((a, _)) = block.adapter
                    && let Some(b_t) = a.b_t
                {
                    matmul_block(cpu, &operand, 0..rows.len(), b_t, 0..a.rank, columns, dz, a.rank, true);
                }
            }
        });
    }

    /// Adds `dlogitsᵀ · right` to `out[vocabulary, width]`: the gradient by the unembedding (right = hidden states)
    /// or by an adapter's B (right = scaled z). Rows are summed in order.
    pub fn weight_gradient(
        &self,
        cpu: &Cpu,
        targets: &Targets,
        dlogprobs: &[f32],
        lse: &[f32],
        right: &[f32],
        width: usize,
        out: &mut [f32],
    ) {
        let chunks: Vec<_> = self.chunks().collect();
        let blocks = self.blocks(cpu, targets);
        super::par_chunks(&cpu.pool, out, CHUNK * width, |i, out| {
            let columns = chunks[i].clone();
            let mut logits = cpu.buffer(ROWS * columns.len());
            for block in &blocks {
                let rows = block.rows.clone();
                let d = &mut logits[..rows.len() * columns.len()];
                self.dlogits(cpu, block, columns.clone(), targets, dlogprobs, lse, d);
                let (left, right) = (Rows::dense(d, columns.len()), Rows::dense(&right[rows.start * width..], width));
                let gradient = Gradient { rows: rows.len(), left, right, transposed: false, out: &mut *out };
                add_gradient_block(cpu, gradient);
            }
        });
    }

    fn dlogits(
        &self,
        cpu: &Cpu,
        block: &RowBlock<'_>,
        columns: Range<usize>,
        targets: &Targets,
        dlogprobs: &[f32],
        lse: &[f32],
        out: &mut [f32],
    ) {
        match self.kept {
            Some(kept) => {
                let (vocab, width) = (self.w.n(), columns.len());
                for (row, out) in kept.rows[block.rows.clone()].iter().zip(out.chunks_exact_mut(width)) {
                    out.copy_from_slice(&kept.logits[row * vocab + columns.start..][..width]);
                }
            }
            None => self.logits(cpu, block, columns.clone(), out, columns.len()),
        }
        for (row, out) in block.rows.clone().zip(out.chunks_exact_mut(columns.len())) {
            let at = targets.offsets[row]..targets.offsets[row + 1];
            let total: f32 = dlogprobs[at.clone()].iter().sum();
            softmax_times(cpu.isa(), out, lse[row], -total);
            for t in at {
                let id = targets.ids[t] as usize;
                if columns.contains(&id) {
                    out[id - columns.start] += dlogprobs[t];
                }
            }
        }
    }
}

multiversion! {
    fn softmax_times(x: &mut [f32], lse: f32, factor: f32) {
        for x in x {
            *x = exp(*x - lse) * factor;
        }
    }
}
