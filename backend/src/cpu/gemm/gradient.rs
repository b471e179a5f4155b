//! Gradients of weights: `leftᵀ · right`, summed over rows in order. In f32, but where the processor multiplies bf16, with bf16 weights ([`tiled_gradient`]).

use std::ops::Range;
use std::time::Instant;

use super::super::parallel::SharedPtr;
#[cfg(target_arch = "x86_64")]
use super::super::tile_unit::TileUnit;
use super::super::{Cpu, Isa};
use super::outer::WeightGradient;
use super::rows_view::RowsView;
#[cfg(target_arch = "x86_64")]
use super::tiled_gradient::{add_tiled_gradient, add_tiled_gradients};
#[cfg(target_arch = "x86_64")]
use super::tiles::f32_avx2_packed;
use super::tiles::{LhsF32, MR_F32, RhsF32, STRIP, TileOut, WriteMode, by_height, f32_portable};
use crate::Dtype;

/// Columns of the left side that a task packs.
const LEFT_BLOCK: usize = 120;
/// Fewest columns of the right side of a task: they share the cost of packing the left side.
const RIGHT_BLOCK: usize = 128;
/// Rows that one pass takes.
const DEPTH: usize = 512;
/// Tasks per thread, so that threads finish together.
const TASKS: usize = 8;

/// Whether gradients are computed in tiles, with rounded sides.
pub(crate) fn uses_tiles(cpu: &Cpu) -> bool {
    cpu.isa().multiplies_bf16() && cpu.dtype == Dtype::Bf16
}

/// The unit that computes gradients in tiles, if the backend does so.
#[cfg(target_arch = "x86_64")]
fn tile_unit(cpu: &Cpu) -> Option<TileUnit> {
    TileUnit::of(cpu.isa()).filter(|_| uses_tiles(cpu))
}

/// Computes gradients on all threads. Their outputs are distinct.
pub(crate) fn add_weight_gradients(cpu: &Cpu, gradients: &mut [WeightGradient<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(unit) = tile_unit(cpu) {
        gradients.iter().for_each(WeightGradient::check);
        return add_tiled_gradients(cpu, unit, gradients);
    }
    let mut tasks = Vec::new();
    let outs: Vec<SharedPtr<f32>> = gradients
        .iter_mut()
        .enumerate()
        .map(|(i, g)| {
            g.check_rows();
            let (left_width, right_width) = (g.left.width(), g.right.width());
            let wanted = (cpu.pool.threads() * TASKS).div_ceil(left_width.div_ceil(LEFT_BLOCK).max(1));
            let width = right_width.div_ceil(wanted).max(RIGHT_BLOCK).next_multiple_of(STRIP);
            for left in (0..left_width).step_by(LEFT_BLOCK) {
                let left = left..(left + LEFT_BLOCK).min(left_width);
                let right = (0..right_width).step_by(width);
                tasks.extend(right.map(|r| (i, left.clone(), r..(r + width).min(right_width))));
            }
            SharedPtr(g.out.at())
        })
        .collect();
    let gradients = &*gradients;
    cpu.pool.run(tasks.len(), |task| {
        let (i, left, right) = tasks[task].clone();
        // SAFETY: checked above; tasks write disjoint columns, and each gradient has an output of its own.
        unsafe { run_block(cpu, &gradients[i], left, right, outs[i].ptr()) };
    });
}

/// Computes one gradient on the calling thread.
pub(crate) fn add_weight_gradient(cpu: &Cpu, mut gradient: WeightGradient<'_>) {
    gradient.check();
    #[cfg(target_arch = "x86_64")]
    if let Some(unit) = tile_unit(cpu) {
        return add_tiled_gradient(cpu, unit, &mut gradient);
    }
    gradient.check_rows();
    let out = gradient.out.at();
    let (left_width, right_width) = (gradient.left.width(), gradient.right.width());
    for left in (0..left_width).step_by(LEFT_BLOCK) {
        let left = left..(left + LEFT_BLOCK).min(left_width);
        // SAFETY: checked above.
        unsafe { run_block(cpu, &gradient, left, 0..right_width, out) };
    }
}

/// # Safety
/// The gradient was checked, `out` is its output, and nobody else accesses the block.
unsafe fn run_block(cpu: &Cpu, g: &WeightGradient<'_>, left: Range<usize>, right: Range<usize>, out: *mut f32) {
    let begin = Instant::now();
    let mut tiles = cpu.buffer(left.len().next_multiple_of(MR_F32) * g.rows().min(DEPTH));
    let mut strip = cpu.buffer(g.rows().min(DEPTH) * STRIP);
    for start in (0..g.rows()).step_by(DEPTH) {
        let steps = (g.rows() - start).min(DEPTH);
        for (i, tile) in tiles.chunks_exact_mut(steps * MR_F32).enumerate() {
            let first = left.start + i * MR_F32;
            copy_rows(&g.left.rows(), start, first..(first + MR_F32).min(left.end), tile, MR_F32);
        }
        for column in right.clone().step_by(STRIP) {
            let columns = (right.end - column).min(STRIP);
            copy_rows(&g.right.rows(), start, column..column + columns, &mut strip[..steps * STRIP], STRIP);
            for (row, tile) in left.clone().step_by(MR_F32).zip(tiles.chunks_exact(steps * MR_F32)) {
                let height = (left.end - row).min(MR_F32);
                let (rows, columns) = (row..row + height, column..column + columns);
                // SAFETY: as the caller ensures.
                unsafe { run_tile(cpu.isa(), g, rows, columns, start, steps, tile, &strip, out) };
            }
        }
    }
    cpu.meter.count(begin, g.rows() * left.len() * right.len(), 0);
}

/// Copies columns of rows to `to`, whose rows have `width` elements; what is beyond the columns is zero.
fn copy_rows(from: &RowsView<'_>, start: usize, columns: Range<usize>, to: &mut [f32], width: usize) {
    if columns.is_empty() {
        return;
    }
    for (i, to) in to.chunks_exact_mut(width).enumerate() {
        let row = &from.data[(start + i) * from.stride..];
        let (used, rest) = to.split_at_mut(columns.len());
        // Whole strips and tiles are copied with a length that the compiler knows.
        match (used.len(), columns.start) {
            (STRIP, at) => used[..STRIP].copy_from_slice(&row[at..at + STRIP]),
            (MR_F32, at) => used[..MR_F32].copy_from_slice(&row[at..at + MR_F32]),
            _ => used.copy_from_slice(&row[columns.clone()]),
        }
        rest.fill(0.0);
    }
}

/// Adds what `steps` rows from `start` on contribute; the first ones are written where nothing is added to.
///
/// # Safety
/// As [`run_block`]; `tile` and `strip` hold these positions of the rows and columns.
unsafe fn run_tile(
    isa: Isa,
    g: &WeightGradient<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    start: usize,
    steps: usize,
    tile: &[f32],
    strip: &[f32],
    out: *mut f32,
) {
    let (row_stride, column_stride) = if g.transposed { (1, g.left.width()) } else { (g.right.width(), 1) };
    let write = WriteMode::add_if(start > 0 || g.out.adds());
    // SAFETY: rows and columns lie in the output.
    unsafe {
        let at = out.add(rows.start * row_stride + columns.start * column_stride);
        if !g.transposed && columns.len() == STRIP {
            return add_tile(isa, rows.len(), steps, tile, strip, TileOut { at, stride: row_stride, write });
        }
        let mut edge = [0f32; MR_F32 * STRIP];
        if write == WriteMode::Add {
            for i in 0..rows.len() {
                for j in 0..columns.len() {
                    edge[i * STRIP + j] = *at.add(i * row_stride + j * column_stride);
                }
            }
        }
        add_tile(isa, rows.len(), steps, tile, strip, TileOut { at: edge.as_mut_ptr(), stride: STRIP, write });
        for i in 0..rows.len() {
            for j in 0..columns.len() {
                *at.add(i * row_stride + j * column_stride) = edge[i * STRIP + j];
            }
        }
    }
}

/// Computes `out += tileᵀ · strip`, over `steps` rows, or `=` if `out` is to be written.
///
/// # Safety
/// `out` has `height` rows of [`STRIP`] elements.
unsafe fn add_tile(isa: Isa, height: usize, steps: usize, tile: &[f32], strip: &[f32], out: TileOut) {
    assert!(tile.len() >= steps * MR_F32 && strip.len() >= steps * STRIP);
    let lhs = LhsF32 { at: tile.as_ptr(), row_stride: 1, k_stride: MR_F32 };
    let rhs = RhsF32 { at: strip.as_ptr(), stride: STRIP };
    // SAFETY: checked above and by the caller; AVX2 kernels run only where `isa` has them.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            isa if isa.has_avx2() => by_height!(height, f32_avx2_packed(steps, lhs, rhs, out): 1 2 3 4 5 6),
            _ => f32_portable(height, STRIP, steps, lhs, rhs, out),
        }
    }
}
