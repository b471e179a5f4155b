//! How a GEMM's output is cut into blocks for threads, what these cost, and whether its sides fit together.

use std::ops::Range;

use super::super::Cpu;
use super::super::packed::NR;
use super::super::tile_layout::TILE;
use super::lhs::{LhsData, PackedLhs};
use super::rhs::GemmRhs;
use super::transpose::GROUP;
use crate::Dtype;
use crate::blocks::BLOCK;

/// Maximum number of rows of a skinny GEMM, which is bound by the reading of its weights.
pub(super) const FEW_ROWS: usize = 24;
/// Rows of a block of the left side: its part of a pass along `k` and a strip of weights stay in the second-level cache.
const ROW_BLOCK: usize = 132;
/// Tasks per thread, so that threads finish together.
const TASKS: usize = 16;
/// Tasks per thread for a GEMM of at most [`FEW_ROWS`] rows.
const FEW_TASKS: usize = 4;

/// `rows` by `columns` of the output of a GEMM, summed over `w_k`.
pub(super) struct OutputBlock {
    /// Rows of the left side.
    pub rows: Range<usize>,
    /// Rows of the weights, from a multiple of [`NR`] on.
    pub columns: Range<usize>,
    /// First position of `k` in the left side, even.
    pub x_k: usize,
    /// Positions of `k` in the weights; begins at an even one, in a transpose at a multiple of [`GROUP`].
    pub w_k: Range<usize>,
}

/// Cost of blocks, for the meter.
#[derive(Clone, Copy, Default)]
pub(super) struct GemmWork {
    pub terms: usize,
    /// Bytes of weights that are read.
    pub weight_bytes: usize,
}

impl GemmWork {
    pub(super) fn of(block: &OutputBlock, w: &GemmRhs<'_>) -> Self {
        let elements = block.columns.len() * block.w_k.len();
        Self { terms: block.rows.len() * elements, weight_bytes: w.bytes_of(elements) }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.terms += other.terms;
        self.weight_bytes += other.weight_bytes;
    }
}

/// Cuts the output of a GEMM into blocks of rows and of whole panels, one for each task.
pub(super) fn output_blocks(
    cpu: &Cpu,
    rows: Range<usize>,
    tile: usize,
    w: &GemmRhs<'_>,
) -> Vec<(Range<usize>, Range<usize>)> {
    blocks_of_columns(cpu, rows, tile, w, w.n())
}

/// Blocks of the first `n` columns.
pub(super) fn blocks_of_columns(
    cpu: &Cpu,
    rows: Range<usize>,
    tile: usize,
    w: &GemmRhs<'_>,
    n: usize,
) -> Vec<(Range<usize>, Range<usize>)> {
    let panels = n.div_ceil(NR);
    // Each block of rows transposes the weights, or dequantizes blocks, once more.
    let least = match w {
        GemmRhs::Matrix(w) if w.blocks().is_none() => 4 * tile,
        GemmRhs::Matrix(_) | GemmRhs::Transpose(_) => 10 * tile,
    };
    // With few rows the reading of weights takes the time, and long runs of them are read faster.
    let per_thread = if rows.len() <= FEW_ROWS { FEW_TASKS } else { TASKS };
    let tasks = cpu.pool.threads() * per_thread;
    let row_block = match cpu.blocking.lhs_bytes {
        Some(bytes) if w.dtype() == Dtype::Bf16 => (bytes / (2 * w.k().max(1))).clamp(4 * TILE, 64 * TILE),
        _ => ROW_BLOCK,
    };
    let low = rows.len().div_ceil(row_block);
    let row_blocks = low.max((tasks / 2).div_ceil(panels.max(1)).min(rows.len().div_ceil(least))).max(1);
    let height = rows.len().div_ceil(row_blocks).next_multiple_of(tile).max(1);
    let width = panels.div_ceil(tasks.div_ceil(row_blocks)).max(1) * NR;
    let mut blocks = Vec::new();
    for column in (0..n).step_by(width) {
        for row in rows.clone().step_by(height) {
            blocks.push((row..(row + height).min(rows.end), column..(column + width).min(n)));
        }
    }
    blocks
}

/// Panics unless positions `x_k..` of the left side can be multiplied by positions `k` of the weights.
pub(super) fn check_fit(x: &PackedLhs, x_k: usize, w: &GemmRhs<'_>, k: Range<usize>) {
    let granule = x.k_granule();
    let aligned = x_k.is_multiple_of(granule) && k.start.is_multiple_of(granule);
    assert!(aligned && k.end <= w.k() && x_k + k.len() <= x.k(), "GEMM of mismatched matrices");
    // Beyond a last incomplete granule one side has to end: it holds zeros there.
    let ends = k.len().is_multiple_of(granule) || k.end == w.k() || x_k + k.len() == x.k();
    assert!(ends, "GEMM of a part that ends within what one instruction multiplies");
    let fits = match (w, &x.data) {
        // Only blocks are transposed for tiles.
        (GemmRhs::Transpose(w), LhsData::Tiles(_)) => w.blocks().is_some() && w.dtype() == Dtype::Bf16,
        (GemmRhs::Transpose(_), LhsData::F32(_)) => k.start.is_multiple_of(GROUP),
        (GemmRhs::Matrix(w), _) if w.dtype() == Dtype::Bf16 => x.stored_k.is_multiple_of(granule),
        (GemmRhs::Matrix(_), lhs) => matches!(lhs, LhsData::F32(_)),
    };
    assert!(fits, "left side and weights differ in type");
    let within = matches!(w, GemmRhs::Matrix(w) if w.blocks().is_some()) && !k.start.is_multiple_of(BLOCK);
    assert!(!within, "GEMM of a part that begins within a block");
}
