//! The loss head: log-probabilities of targets and their gradient, in chunks of the vocabulary. No `[tokens, vocabulary]`
//! matrix is saved unless it is small; else the backward pass recomputes logits.

mod backward;
mod entropy;
mod forward;
mod log_sum_exp;
mod pass;
mod reference;

use std::ops::Range;

#[cfg(test)]
pub(super) use backward::{RowDivergences, RowGradients};
pub(super) use log_sum_exp::log_sum;
pub(super) use pass::{HeadState, backward, divergences, entropies, part, target_logprobs};
#[cfg(test)]
pub(super) use reference::ReferenceHead;

use super::Cpu;
use super::gemm::{GemmRhs, PackedLhs, matmul_block};
use super::linear::runs_within;
use super::packed::PackedMatrix;
use crate::Targets;

/// Columns of a chunk of the vocabulary. Log-sum-exp combines chunks in order, so it is part of the result's bits.
pub(super) const CHUNK: usize = 512;
/// Maximum number of rows of a block.
const ROWS: usize = 264;
/// Maximum number of rows of a sequence in a block of [`Head::blocks_by_sequence`].
const SEQUENCE_ROWS: usize = 256;

/// Contribution of a low-rank adapter to the logits of rows: `z Bᵀ`.
#[derive(Clone, Copy)]
pub(super) struct HeadAdapter<'a> {
    /// Low-rank rows of the group, `scale · x Aᵀ`: `[rows, rank]`.
    pub z: &'a [f32],
    /// The matrix B: `[vocabulary, rank]`.
    pub b: &'a PackedMatrix,
    /// The transpose Bᵀ, `[rank, vocabulary]`, for [`Head::backward`].
    pub b_t: Option<GemmRhs<'a>>,
    pub rank: usize,
}

/// Rows with the same adapter.
pub(super) struct HeadRowGroup<'a> {
    /// Rows of the head.
    pub rows: Range<usize>,
    /// Adapter of the rows on the unembedding.
    pub adapter: Option<HeadAdapter<'a>>,
    /// Start of the gradient with respect to the group's `z` in the `dz` of [`Head::backward`].
    pub dz_at: usize,
}

/// A pass's final hidden states and the unembedding.
pub(super) struct Head<'a> {
    /// Normalised hidden states, packed for `w`.
    pub x: &'a PackedLhs,
    /// The unembedding `[vocabulary, hidden]`; it may have padding rows behind those of the tokens.
    pub w: &'a PackedMatrix,
    /// Number of tokens in the vocabulary.
    pub vocab: usize,
    /// Rows by adapter, covering all rows in order.
    pub groups: &'a [HeadRowGroup<'a>],
    /// Logits that the forward pass saved; the backward pass recomputes them without.
    pub saved: Option<SavedLogits<'a>>,
}

/// Logits of a pass that was small enough to save them.
#[derive(Clone, Copy)]
pub(super) struct SavedLogits<'a> {
    /// Logits of all rows of that pass, chunk after chunk of the vocabulary, each chunk row by row.
    pub logits: &'a [f32],
    /// Row in `logits` of each row of the head.
    pub rows: &'a [usize],
}

impl<'a> SavedLogits<'a> {
    /// Logits of a row of the head in a chunk of the vocabulary of `vocab` tokens.
    fn chunk(&self, row: usize, columns: &Range<usize>, vocab: usize) -> &'a [f32] {
        let saved_rows = self.logits.len() / vocab;
        &self.logits[saved_rows * columns.start + self.rows[row] * columns.len()..][..columns.len()]
    }
}

/// Rows of a group that one task computes.
struct RowBlock<'a> {
    rows: Range<usize>,
    /// The block's adapter and the first element of its rows in `z`.
    adapter: Option<(HeadAdapter<'a>, usize)>,
    /// First element of its rows in `dz`.
    dz_at: usize,
}

impl<'a> Head<'a> {
    /// Blocks of rows for parallel tasks: their rows, targets and parts of `dz` are disjoint. Panics where groups overlap, or
    /// exceed the hidden states or the targets.
    fn blocks(&self, cpu: &Cpu, targets: &Targets) -> Vec<RowBlock<'a>> {
        let (mut row, mut z) = (0, 0);
        for group in self.groups {
            assert!(group.rows.start >= row && group.dz_at >= z, "groups overlap");
            row = group.rows.end.max(row);
            z = group.dz_at + group.rows.len() * group.adapter.map_or(0, |a| a.rank);
        }
        assert!(row <= self.x.rows(), "rows beyond the hidden states");
        assert!(row < targets.offsets.len(), "a row has no targets");
        assert!(targets.offsets.is_sorted() && targets.offsets[row] <= targets.ids.len(), "targets overlap");
        let total: usize = self.groups.iter().map(|g| g.rows.len()).sum();
        // As many blocks of one height as threads can share evenly.
        let threads = cpu.pool.threads();
        let height = total.div_ceil(total.div_ceil(ROWS).next_multiple_of(threads).max(1)).max(6);
        let split = |group: &HeadRowGroup<'a>| {
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

    /// Blocks of rows whose sums continue in order, each with its rows by sequence, counted from the block's first row.
    /// A sequence is cut only at multiples of [`SEQUENCE_ROWS`] of its rows, because kernels add several rows at once.
    fn blocks_by_sequence(&self, sequences: &[Range<usize>]) -> Vec<(RowBlock<'a>, Vec<Range<usize>>)> {
        let mut blocks: Vec<(RowBlock<'a>, Vec<Range<usize>>)> = Vec::new();
        for group in self.groups {
            let mut open = false;
            for run in runs_within(sequences, &group.rows) {
                for start in run.clone().step_by(SEQUENCE_ROWS) {
                    let piece = start..(start + SEQUENCE_ROWS).min(run.end);
                    let first = group.rows.start + piece.start;
                    match blocks.last_mut().filter(|(block, _)| open && block.rows.len() + piece.len() <= ROWS) {
                        Some((block, runs)) => {
                            let at = first - block.rows.start;
                            block.rows.end = first + piece.len();
                            runs.push(at..at + piece.len());
                        }
                        None => {
                            let adapter = group.adapter.map(|a| (a, piece.start * a.rank));
                            let block = RowBlock { rows: first..first + piece.len(), adapter, dz_at: 0 };
                            let (block, runs) = (block, std::iter::once(0..piece.len()).collect());
                            blocks.push((block, runs));
                        }
                    }
                    open = true;
                }
            }
        }
        blocks
    }

    /// Logits of a block of rows for a chunk of the vocabulary, in rows of `stride` elements.
    fn logits(&self, cpu: &Cpu, block: &RowBlock<'_>, columns: Range<usize>, out: &mut [f32], stride: usize) {
        matmul_block(cpu, self.x, block.rows.clone(), self.w, columns.clone(), 0..self.w.k(), out, stride, false);
        if let Some((a, at)) = block.adapter {
            let rows = block.rows.len();
            let mut z = PackedLhs::empty(cpu, a.b.dtype(), rows, a.rank);
            z.fill(cpu, &a.z[at..at + rows * a.rank]);
            matmul_block(cpu, &z, 0..rows, a.b, columns, 0..a.rank, out, stride, true);
        }
    }

    /// Columns of each chunk of the vocabulary.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> {
        let vocab = self.vocab;
        (0..vocab).step_by(CHUNK).map(move |start| start..(start + CHUNK).min(vocab))
    }
}
