//! Rotary position embedding (Su et al. 2021, arXiv:2104.09864) in the half-split layout of Hugging Face:
//! element `i` pairs with `i + head_dim / 2`.

use std::ops::Range;

use super::Cpu;
use super::gemm::{RowsView, pack_output_gradient, uses_tiles};
use super::operands::OutputGradient;
use super::parallel::{SharedPtr, for_rows};
use super::rows::HostRows;
use super::vexp::multiversion;
use crate::{Held, Rows};

/// Cosines and sines for every position of a model.
pub struct Rope {
    half: usize,
    /// Cosines of the angles: `[position][half]`.
    cos: Vec<f32>,
    /// Sines of the angles: `[position][half]`.
    sin: Vec<f32>,
}

multiversion! {
    /// Rotates the first `2 * cos.len()` elements of consecutive heads of `width`, by the negative angles where `inverse` is
    /// set.
    fn rotate_heads(heads: &mut [f32], width: usize, cos: &[f32], sin: &[f32], inverse: bool) {
        let half = cos.len();
        for head in heads.chunks_exact_mut(width) {
            let (low, high) = head[..2 * half].split_at_mut(half);
            for ((low, high), (cos, sin)) in low.iter_mut().zip(high).zip(cos.iter().zip(sin)) {
                let sin = if inverse { -sin } else { *sin };
                let (a, b) = (*low, *high);
                *low = a * cos - b * sin;
                *high = b * cos + a * sin;
            }
        }
    }
}

impl Rope {
    /// Makes tables from (cos, sin) of `[position][half]`.
    pub fn new(half: usize, table: Vec<(f32, f32)>) -> Self {
        let (cos, sin) = table.into_iter().unzip();
        Self { half, cos, sin }
    }

    /// Rotates `heads` consecutive heads of `width` elements at `offset` of every row of `stride` elements; row `i` is at
    /// `positions[i]`. `inverse` rotates by the negative angles: the backward pass.
    pub fn apply(
        &self,
        cpu: &Cpu,
        x: &mut [f32],
        stride: usize,
        offset: usize,
        heads: usize,
        width: usize,
        positions: &[u32],
        inverse: bool,
    ) {
        for_rows(cpu, x, stride, |i, row| self.apply_row(cpu, row, offset, heads, width, positions[i], inverse));
    }

    fn apply_row(
        &self,
        cpu: &Cpu,
        row: &mut [f32],
        offset: usize,
        heads: usize,
        width: usize,
        position: u32,
        inverse: bool,
    ) {
        let (cos, sin) = self.angles(position);
        rotate_heads(cpu.isa(), &mut row[offset..offset + heads * width], width, cos, sin, inverse);
    }

    /// Cosines and sines of a position, one for each pair.
    pub(super) fn angles(&self, position: u32) -> (&[f32], &[f32]) {
        let at = position as usize * self.half;
        (&self.cos[at..at + self.half], &self.sin[at..at + self.half])
    }

    /// Rotates the first `heads` heads of every row by the negative angles, in place, and returns the rows as the gradient
    /// with respect to a linear layer's output; `sequences` are they by sequence.
    pub(super) fn invert_gradient(
        &self,
        cpu: &Cpu,
        mut x: HostRows,
        heads: usize,
        head_dim: usize,
        positions: &[u32],
        sequences: &[Range<usize>],
    ) -> OutputGradient<'static> {
        let (rows, width) = (x.rows(), x.width());
        if !uses_tiles(cpu) {
            self.apply(cpu, &mut x, width, 0, heads, head_dim, positions, true);
            return OutputGradient::new(cpu, Held::Owned(x), sequences);
        }
        let base = SharedPtr(x.as_mut_ptr());
        let (lhs, side) = pack_output_gradient(cpu, rows, width, sequences, |packer, i, group| {
            assert!(group.first + group.rows <= rows);
            // SAFETY: in bounds, as just checked; groups have rows of their own.
            let own =
                unsafe { std::slice::from_raw_parts_mut(base.ptr().add(group.first * width), group.rows * width) };
            for (row, position) in own.chunks_exact_mut(width).zip(&positions[group.first..]) {
                self.apply_row(cpu, row, 0, heads, head_dim, *position, true);
            }
            // SAFETY: each group is packed once.
            unsafe { packer.put(i, &RowsView::dense(own, width), 0, 0) };
        });
        OutputGradient::packed(Some(Held::Owned(x)), lhs, side)
    }
}
