//! Gradients of weights: `leftᵀ · right`, summed over rows in order. Always f32.

use std::ops::Range;
use std::time::Instant;

use super::super::parallel::SharedPtr;
use super::super::{Cpu, Isa};
#[cfg(target_arch = "x86_64")]
use super::tiles::f32_avx2_packed;
use super::tiles::{LhsF32, MR_F32, RhsF32, STRIP, TileOut, WriteMode, by_height, f32_portable};

/// Columns of the left side that a task packs.
const LEFT_BLOCK: usize = 120;
/// Fewest columns of the right side of a task: they share the cost of packing the left side.
const RIGHT_BLOCK: usize = 128;
/// Rows that one pass takes.
const DEPTH: usize = 512;
/// Tasks per thread, so that threads finish together.
const TASKS: usize = 8;

/// Rows of a matrix, `width` elements each, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct RowsView<'a> {
    /// From the first element of the first row on.
    pub data: &'a [f32],
    /// Distance of rows.
    pub stride: usize,
    /// Elements of a row that are read.
    pub width: usize,
}

impl<'a> RowsView<'a> {
    /// Rows without gaps.
    pub(crate) fn dense(data: &'a [f32], width: usize) -> Self {
        Self { data, stride: width, width }
    }

    fn holds(&self, rows: usize) -> bool {
        self.width <= self.stride && (rows == 0 || self.data.len() >= (rows - 1) * self.stride + self.width)
    }
}

/// `out[left.width, right.width] += leftᵀ · right`, or its transpose.
pub(crate) struct WeightGradient<'a> {
    /// Rows that are summed, in order.
    pub rows: usize,
    /// `[rows, left.width]`.
    pub left: RowsView<'a>,
    /// `[rows, right.width]`; it is faster to have the wider matrix here.
    pub right: RowsView<'a>,
    /// Whether the transpose, `[right.width, left.width]`, is added.
    pub transposed: bool,
    /// Dense, in the order that `transposed` says.
    pub out: &'a mut [f32],
}

impl WeightGradient<'_> {
    fn check(&self) {
        assert!(self.left.holds(self.rows) && self.right.holds(self.rows), "gradient of mismatched matrices");
        assert!(self.out.len() >= self.left.width * self.right.width, "gradient out of bounds");
    }
}

/// Computes gradients on all threads. Their outputs are distinct.
pub(crate) fn add_weight_gradients(cpu: &Cpu, gradients: &mut [WeightGradient<'_>]) {
    let mut tasks = Vec::new();
    let outs: Vec<SharedPtr<f32>> = gradients
        .iter_mut()
        .enumerate()
        .map(|(i, g)| {
            g.check();
            let wanted = (cpu.pool.threads() * TASKS).div_ceil(g.left.width.div_ceil(LEFT_BLOCK).max(1));
            let width = g.right.width.div_ceil(wanted).max(RIGHT_BLOCK).next_multiple_of(STRIP);
            for left in (0..g.left.width).step_by(LEFT_BLOCK) {
                let left = left..(left + LEFT_BLOCK).min(g.left.width);
                let right = (0..g.right.width).step_by(width);
                tasks.extend(right.map(|r| (i, left.clone(), r..(r + width).min(g.right.width))));
            }
            SharedPtr(g.out.as_mut_ptr())
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
pub(crate) fn add_weight_gradient(cpu: &Cpu, gradient: WeightGradient<'_>) {
    gradient.check();
    let out = gradient.out.as_mut_ptr();
    for left in (0..gradient.left.width).step_by(LEFT_BLOCK) {
        let left = left..(left + LEFT_BLOCK).min(gradient.left.width);
        // SAFETY: checked above.
        unsafe { run_block(cpu, &gradient, left, 0..gradient.right.width, out) };
    }
}

/// # Safety
/// The gradient was checked, `out` is its output, and nobody else accesses the block.
unsafe fn run_block(cpu: &Cpu, g: &WeightGradient<'_>, left: Range<usize>, right: Range<usize>, out: *mut f32) {
    let begin = Instant::now();
    let mut tiles = cpu.buffer(left.len().next_multiple_of(MR_F32) * g.rows.min(DEPTH));
    let mut strip = cpu.buffer(g.rows.min(DEPTH) * STRIP);
    for start in (0..g.rows).step_by(DEPTH) {
        let steps = (g.rows - start).min(DEPTH);
        for (i, tile) in tiles.chunks_exact_mut(steps * MR_F32).enumerate() {
            let first = left.start + i * MR_F32;
            copy_rows(&g.left, start, first..(first + MR_F32).min(left.end), tile, MR_F32);
        }
        for column in right.clone().step_by(STRIP) {
            let columns = (right.end - column).min(STRIP);
            copy_rows(&g.right, start, column..column + columns, &mut strip[..steps * STRIP], STRIP);
            for (row, tile) in left.clone().step_by(MR_F32).zip(tiles.chunks_exact(steps * MR_F32)) {
                let height = (left.end - row).min(MR_F32);
                // SAFETY: as the caller ensures.
                unsafe {
                    run_tile(cpu.isa(), g, row..row + height, column..column + columns, steps, tile, &strip, out)
                };
            }
        }
    }
    cpu.meter.count(begin, g.rows * left.len() * right.len(), 0);
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

/// # Safety
/// As [`run_block`]; `tile` and `strip` hold `steps` positions of the rows and columns.
unsafe fn run_tile(
    isa: Isa,
    g: &WeightGradient<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    steps: usize,
    tile: &[f32],
    strip: &[f32],
    out: *mut f32,
) {
    let (row_stride, column_stride) = if g.transposed { (1, g.left.width) } else { (g.right.width, 1) };
    // SAFETY: rows and columns lie in the output.
    unsafe {
        let at = out.add(rows.start * row_stride + columns.start * column_stride);
        if !g.transposed && columns.len() == STRIP {
            return add_tile(isa, rows.len(), steps, tile, strip, at, row_stride);
        }
        let mut edge = [0f32; MR_F32 * STRIP];
        for i in 0..rows.len() {
            for j in 0..columns.len() {
                edge[i * STRIP + j] = *at.add(i * row_stride + j * column_stride);
            }
        }
        add_tile(isa, rows.len(), steps, tile, strip, edge.as_mut_ptr(), STRIP);
        for i in 0..rows.len() {
            for j in 0..columns.len() {
                *at.add(i * row_stride + j * column_stride) = edge[i * STRIP + j];
            }
        }
    }
}

/// `out += tileᵀ · strip`, over `steps` rows.
///
/// # Safety
/// `out` has `height` rows of [`STRIP`] elements.
unsafe fn add_tile(isa: Isa, height: usize, steps: usize, tile: &[f32], strip: &[f32], out: *mut f32, stride: usize) {
    assert!(tile.len() >= steps * MR_F32 && strip.len() >= steps * STRIP);
    let lhs = LhsF32 { at: tile.as_ptr(), row_stride: 1, k_stride: MR_F32 };
    let rhs = RhsF32 { at: strip.as_ptr(), stride: STRIP };
    let out = TileOut { at: out, stride, write: WriteMode::Add };
    // SAFETY: checked above and by the caller; AVX2 kernels run only where `isa` says so.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Bf16 => by_height!(height, f32_avx2_packed(steps, lhs, rhs, out): 1 2 3 4 5 6),
            _ => f32_portable(height, STRIP, steps, lhs, rhs, out),
        }
    }
}
