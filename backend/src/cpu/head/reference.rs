//! The distributions that those of rows are compared with.

use std::ops::Range;

use super::super::Cpu;
use super::super::gemm::{PackedLhs, matmul_block};
use super::super::packed::PackedMatrix;
use crate::{ReferenceRows, Rows};

/// Rows of an unembedding without adapters.
pub(in crate::cpu) struct ReferenceHead<'a> {
    pub x: PackedLhs,
    pub w: &'a PackedMatrix,
    /// Log-sum-exp of each row, over the whole vocabulary.
    pub lse: &'a [f32],
}

/// Logits of a row in a chunk of the vocabulary, with the row's log-sum-exp.
#[derive(Clone, Copy)]
pub(super) struct ReferenceChunk<'a> {
    pub logits: &'a [f32],
    pub lse: f32,
}

impl<'a> ReferenceHead<'a> {
    /// Those of the rows `rows`.
    pub(in crate::cpu) fn new(cpu: &Cpu, of: &ReferenceRows<'a, Cpu>, rows: Range<usize>) -> Self {
        let (w, width) = (of.unembedding.packed(), of.hidden.width());
        let x = PackedLhs::new(cpu, w.dtype(), &of.hidden[rows.start * width..rows.end * width], width);
        Self { x, w, lse: &of.lse[rows] }
    }

    /// Writes the logits of rows for a chunk of the vocabulary, row by row.
    pub(super) fn logits(&self, cpu: &Cpu, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        let width = columns.len();
        matmul_block(cpu, &self.x, rows, self.w, columns, 0..self.w.k(), out, width, false);
    }

    /// A row of the chunk whose logits are `logits`.
    pub(super) fn chunk<'c>(&self, row: usize, logits: &'c [f32]) -> ReferenceChunk<'c> {
        ReferenceChunk { logits, lse: self.lse[row] }
    }
}
