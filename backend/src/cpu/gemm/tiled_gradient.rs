//! Gradients of weights in tiles: `leftᵀ · right` with both sides rounded to bf16, sums in f32. Sides that are not packed
//! yet are packed once for all tasks ([`sides`](super::sides)).

use std::arch::x86_64::*;
use std::ops::Range;
use std::time::Instant;

use super::super::Cpu;
use super::super::packed::NR;
use super::super::parallel::SharedPtr;
use super::super::tile_layout::{TILE, TILE_BYTES, TILE_K, TileLhs, TileRhs};
use super::super::tile_unit::TileUnit;
use super::outer::{GradientSide, WeightGradient};
use super::scratch::through_scratch;
use super::sides::{PackedSide, SideForm, TILE_WORDS, groups};
use super::tiles::{TileOut, WriteMode};
use crate::Held;

/// Tasks per thread, so that threads finish together.
const TASKS: usize = 8;

/// Position of a gradient's side in packed rows.
struct Placed<'a> {
    side: Held<'a, PackedSide>,
    group: usize,
    /// First tile of columns, or panel.
    first: usize,
}

impl<'a> Placed<'a> {
    fn of(cpu: &Cpu, parallel: bool, form: SideForm, side: &GradientSide<'a>, runs: &[Range<usize>]) -> Self {
        match side {
            GradientSide::Rows(rows) => {
                let side = Held::Owned(PackedSide::pack(cpu, form, parallel, rows, groups(runs)));
                Self { side, group: 0, first: 0 }
            }
            GradientSide::Packed(part) => {
                let unit = match form {
                    SideForm::Left => TILE,
                    SideForm::Right => NR,
                };
                assert!(part.side.form == form && part.column.is_multiple_of(unit), "a side packed in another form");
                let group = part.first_group(runs).unwrap_or_default();
                Self { side: Held::Borrowed(part.side), group, first: part.column / unit }
            }
        }
    }

    /// The words of one group from a tile of columns, or a panel, on; `words` is their number per group.
    fn at(&self, index: usize, words: usize) -> &[u32] {
        &self.side.words[((self.first + index) * self.side.groups.len() + self.group) * words..]
    }
}

/// Rows that a right side was packed from: gradients that share them share the packed side.
#[derive(Clone, Copy, PartialEq)]
struct SideKey {
    /// Address of the first element.
    at: usize,
    stride: usize,
    width: usize,
}

impl SideKey {
    fn of(side: &GradientSide<'_>) -> Option<Self> {
        match side {
            GradientSide::Rows(rows) => {
                Some(Self { at: rows.data.as_ptr().addr(), stride: rows.stride, width: rows.width })
            }
            GradientSide::Packed(_) => None,
        }
    }
}

/// A right side that several gradients may share.
struct SharedRight<'a> {
    key: Option<SideKey>,
    runs: &'a [Range<usize>],
    placed: Placed<'a>,
}

/// A gradient with its sides packed.
struct TiledGradient<'a> {
    left: Placed<'a>,
    /// Index of its right side.
    right: usize,
    /// Columns of the left and of the right side.
    extents: (usize, usize),
    steps: usize,
    out: SharedPtr<f32>,
    /// Whether it is added to what `out` has.
    adds: bool,
}

/// Adds or writes gradients, which were checked, on all threads.
pub(super) fn add_tiled_gradients(cpu: &Cpu, unit: TileUnit, gradients: &mut [WeightGradient<'_>]) {
    let begin = Instant::now();
    let mut rights: Vec<SharedRight<'_>> = Vec::new();
    let mut tiled = Vec::new();
    for g in gradients.iter_mut() {
        // The transpose of a product is the product of the transposes, in the other order: to the bit.
        let (left, right) = if g.transposed { (g.right, g.left) } else { (g.left, g.right) };
        let (key, runs) = (SideKey::of(&right), g.runs);
        let found = rights.iter().position(|side| key.is_some() && side.key == key && side.runs == runs);
        let index = found.unwrap_or_else(|| {
            rights.push(SharedRight { key, runs, placed: Placed::of(cpu, true, SideForm::Right, &right, runs) });
            rights.len() - 1
        });
        tiled.push(TiledGradient {
            left: Placed::of(cpu, true, SideForm::Left, &left, runs),
            right: index,
            extents: (left.width(), right.width()),
            steps: groups(runs).len(),
            out: SharedPtr(g.out.at()),
            adds: g.out.adds(),
        });
    }
    let mut tasks = Vec::new();
    for (i, g) in tiled.iter().enumerate() {
        let (left, right) = g.extents;
        // As few cuts of the left side as give every thread its tasks: each task reads the right side once.
        let pairs = left.div_ceil(2 * TILE);
        let height = pairs.div_ceil(cpu.pool.threads() * TASKS).max(1) * 2 * TILE;
        let columns = if pairs >= cpu.pool.threads() * 2 {
            right
        } else {
            right.div_ceil(cpu.pool.threads() * TASKS).next_multiple_of(NR)
        };
        for row in (0..left).step_by(height) {
            for column in (0..right).step_by(columns.max(NR)) {
                tasks.push((i, row..(row + height).min(left), column..(column + columns.max(NR)).min(right)));
            }
        }
    }
    cpu.meter.count(begin, 0, 0);
    cpu.pool.run(tasks.len(), |task| {
        let begin = Instant::now();
        let (i, rows, columns) = &tasks[task];
        let g = &tiled[*i];
        // SAFETY: each gradient was checked and has an output of its own, of which tasks have disjoint parts; sides are packed
        // over all of their columns.
        unsafe { run_block(unit, g, &rights[g.right].placed, rows.clone(), columns.clone()) };
        cpu.meter.count(begin, g.steps * TILE_K * rows.len() * columns.len(), 0);
    });
}

/// Adds or writes one gradient, which was checked, on the calling thread.
pub(super) fn add_tiled_gradient(cpu: &Cpu, unit: TileUnit, g: &mut WeightGradient<'_>) {
    let begin = Instant::now();
    let (left, right) = if g.transposed { (g.right, g.left) } else { (g.left, g.right) };
    let (steps, extents) = (groups(g.runs).len(), (left.width(), right.width()));
    let right = Placed::of(cpu, false, SideForm::Right, &right, g.runs);
    let left = Placed::of(cpu, false, SideForm::Left, &left, g.runs);
    let (adds, out) = (g.out.adds(), SharedPtr(g.out.at()));
    let tiled = TiledGradient { left, right: 0, extents, steps, out, adds };
    // SAFETY: the gradient was checked, and both sides are packed over all of their columns.
    unsafe { run_block(unit, &tiled, &right, 0..extents.0, 0..extents.1) };
    cpu.meter.count(begin, steps * TILE_K * extents.0 * extents.1, 0);
}

/// Adds or writes a part of a gradient.
///
/// # Safety
/// The processor has the unit; rows and columns lie in the output, which nobody else accesses there.
unsafe fn run_block(
    unit: TileUnit,
    g: &TiledGradient<'_>,
    right: &Placed<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let (height, width) = g.extents;
    assert!(rows.start.is_multiple_of(2 * TILE) && columns.start.is_multiple_of(NR));
    assert!(rows.end <= height && columns.end <= width);
    if g.steps == 0 {
        return;
    }
    let second = g.left.side.groups.len() * TILE_BYTES;
    // SAFETY: the tiles lie in the packed sides, the sums in the output.
    unsafe {
        unit.configure();
        for row in rows.clone().step_by(2 * TILE) {
            let a = g.left.at(row / TILE, TILE_WORDS);
            let a = TileLhs { at: a.as_ptr().cast(), row_stride: 64, step: TILE_BYTES, second };
            let tall = row + TILE < rows.end;
            for column in columns.clone().step_by(NR) {
                let b = right.at(column / NR, 2 * TILE_WORDS);
                let b = TileRhs { at: b.as_ptr().cast(), row_stride: 4 * NR, step: 2 * TILE_BYTES };
                let used = ((rows.end - row).min(2 * TILE), (columns.end - column).min(NR));
                let at = g.out.ptr().add(row * width + column);
                let out = TileOut { at, stride: width, write: WriteMode::add_if(g.adds) };
                if used == (2 * TILE, NR) {
                    prefetch(at.wrapping_add(NR), width);
                    unit.multiply::<2, 2>(g.steps, a, b, at, width, g.adds);
                } else {
                    through_scratch(0, used.0, used.1, out, |out| {
                        if tall {
                            unit.multiply::<2, 2>(g.steps, a, b, out.at, out.stride, g.adds);
                        } else {
                            unit.multiply::<1, 2>(g.steps, a, b, out.at, out.stride, g.adds);
                        }
                    });
                }
            }
        }
    }
}

/// Prefetches the next sums: rows far apart, which no hardware prefetcher follows.
#[inline(always)]
fn prefetch(at: *mut f32, stride: usize) {
    for row in 0..2 * TILE {
        let line = at.wrapping_add(row * stride);
        // SAFETY: a prefetch reads nothing that the program sees, at any address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.cast());
            _mm_prefetch::<_MM_HINT_T0>(line.wrapping_add(TILE).cast());
        }
    }
}
