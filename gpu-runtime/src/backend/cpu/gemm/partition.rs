//! How a GEMM's output is cut into blocks for threads, and whether its sides fit together.

use std::ops::Range;

use super::super::Cpu;
use super::super::packed::{NR, PackedData, PackedMatrix};
use super::block::FEW_ROWS;
use super::lhs::{LhsData, PackedLhs};
use super::rhs::GemmRhs;
use super::transpose::GROUP;

/// Rows of a block of the left side: its part of a pass along `k` and a strip of weights stay in the second-level cache.
const ROW_BLOCK: usize = 132;
/// Tasks per thread, so that threads finish together.
const TASKS: usize = 16;
/// The same for a GEMM of at most [`FEW_ROWS`] rows.
const FEW_TASKS: usize = 4;

/// Cuts the output of a GEMM into blocks of rows and of whole panels, one for each task.
pub(super) fn output_blocks(
    cpu: &Cpu,
    rows: Range<usize>,
    tile: usize,
    w: &GemmRhs<'_>,
) -> Vec<(Range<usize>, Range<usize>)> {
    let (n, panels) = (w.n(), w.n().div_ceil(NR));
    // Each block of rows transposes the weights once more.
    let least = match w {
        GemmRhs::Matrix(_) => 4 * tile,
        GemmRhs::Transpose(_) => 10 * tile,
    };
    // With few rows the reading of weights takes the time, and long runs of them are read faster.
    let per_thread = if rows.len() <= FEW_ROWS { FEW_TASKS } else { TASKS };
    let tasks = cpu.pool.threads() * per_thread;
    let low = rows.len().div_ceil(ROW_BLOCK);
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
    let aligned = x_k.is_multiple_of(2) && k.start.is_multiple_of(2);
    assert!(aligned && k.end <= w.k() && x_k + k.len() <= x.k(), "GEMM of mismatched matrices");
    let fits = match (w, &x.data) {
        (GemmRhs::Transpose(_), lhs) => k.start.is_multiple_of(GROUP) && matches!(lhs, LhsData::F32(_)),
        (GemmRhs::Matrix(PackedMatrix { data: PackedData::Bf16(_), .. }), _) => x.stored_k.is_multiple_of(2),
        (GemmRhs::Matrix(_), lhs) => matches!(lhs, LhsData::F32(_)),
    };
    assert!(fits, "left side and weights differ in type");
}
