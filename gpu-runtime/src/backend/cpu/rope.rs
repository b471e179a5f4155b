//! Rotary position embedding (Su et al. 2021, arXiv:2104.09864) in the half-split layout of Hugging Face:
//! element `i` pairs with `i + head_dim / 2`.

use super::Cpu;
use super::parallel::for_rows;

/// Cosines and sines for every position of a model.
pub struct Rope {
    half: usize,
    /// `[position][half]` of (cos, sin).
    table: Vec<(f32, f32)>,
}

impl Rope {
    /// From (cos, sin) of `[position][half]`.
    pub fn new(half: usize, table: Vec<(f32, f32)>) -> Self {
        Self { half, table }
    }

    /// Rotates `heads` consecutive heads at `offset` of every row of `stride` elements; row `i` is at `positions[i]`.
    /// `inverse` rotates by the negative angles: the backward pass.
    pub fn apply(
        &self,
        cpu: &Cpu,
        x: &mut [f32],
        stride: usize,
        offset: usize,
        heads: usize,
        positions: &[u32],
        inverse: bool,
    ) {
        let half = self.half;
        for_rows(cpu, x, stride, |i, row| {
            let at = positions[i] as usize * half;
            let table = &self.table[at..at + half];
            for head in row[offset..offset + heads * 2 * half].chunks_exact_mut(2 * half) {
                let (low, high) = head.split_at_mut(half);
                for ((low, high), (cos, sin)) in low.iter_mut().zip(high).zip(table) {
                    let sin = if inverse { -sin } else { *sin };
                    let (a, b) = (*low, *high);
                    *low = a * cos - b * sin;
                    *high = b * cos + a * sin;
                }
            }
        });
    }
}
