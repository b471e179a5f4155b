//! Every product of each unit that the processor has, against the chains that its documentation gives.

use half::bf16;

use super::TileUnit;
use crate::cpu::Isa;
use crate::cpu::tile_layout::{Segment, TILE, TILE_BYTES, TILE_K, TileLhs, TileRhs};

/// Elements from a row of sums to the next.
const STRIDE: usize = 40;

fn units() -> Vec<TileUnit> {
    Isa::available().into_iter().filter_map(TileUnit::of).collect()
}

/// The arithmetic of a unit, for one sum.
fn chain(unit: TileUnit, old: f32, a: &[f32], b: &[f32]) -> f32 {
    let steps = a.chunks(TILE_K).zip(b.chunks(TILE_K));
    steps.fold(old, |sum, (a, b)| match unit {
        TileUnit::Amx => {
            let part = |parity: usize| {
                let pairs = a.iter().zip(b).skip(parity).step_by(2);
                pairs.fold(0f32, |sum, (a, b)| a.mul_add(*b, sum))
            };
            sum + (part(0) + part(1))
        }
        TileUnit::Avx512 => {
            a.chunks(2).zip(b.chunks(2)).fold(sum, |sum, (a, b)| a[0].mul_add(b[0], a[1].mul_add(b[1], sum)))
        }
    })
}

/// Numbers of both signs that bf16 has exactly, none of them small.
fn number(i: usize) -> bf16 {
    bf16::from_f32(((i * 7_919 + 13) % 509) as f32 / 64.0 - 3.9)
}

fn word(low: bf16, high: bf16) -> u32 {
    u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
}

/// 32 rows and 32 columns along `k`, and old sums.
struct Sides {
    k: usize,
    /// The left side: `[32][k]`.
    a: Vec<bf16>,
    /// The right side: `[k][32]`.
    b: Vec<bf16>,
    old: Vec<f32>,
}

impl Sides {
    fn new(steps: usize, seed: usize) -> Self {
        let k = steps * TILE_K;
        Self {
            k,
            a: (0..32 * k).map(|i| number(i + seed)).collect(),
            b: (0..k * 32).map(|i| number(i + 77 * (seed + 1))).collect(),
            old: (0..32 * STRIDE).map(|i| i as f32 / 3.0).collect(),
        }
    }

    /// Rows of `columns` words from column `first` on.
    fn words(&self, first: usize, columns: usize) -> Vec<u32> {
        let at = |row: usize, column: usize| self.b[row * 32 + column];
        (0..self.k / 2)
            .flat_map(|row| {
                (first..first + columns).map(move |column| word(at(2 * row, column), at(2 * row + 1, column)))
            })
            .collect()
    }

    /// Tiles of rows: `[2][steps][16][32]`.
    fn tiles(&self) -> Vec<bf16> {
        let mut tiles = Vec::new();
        for tile in 0..2 {
            for step in 0..self.k / TILE_K {
                for row in 0..TILE {
                    let at = (tile * TILE + row) * self.k + step * TILE_K;
                    tiles.extend_from_slice(&self.a[at..at + TILE_K]);
                }
            }
        }
        tiles
    }

    fn row(&self, row: usize) -> Vec<f32> {
        self.a[row * self.k..(row + 1) * self.k].iter().map(|x| x.to_f32()).collect()
    }

    fn column(&self, column: usize) -> Vec<f32> {
        (0..self.k).map(|p| self.b[p * 32 + column].to_f32()).collect()
    }

    /// The sum that is expected, of the terms of several sides in order.
    fn expected(unit: TileUnit, sides: &[&Self], add: bool, row: usize, column: usize) -> f32 {
        let old = if add { sides[0].old[row * STRIDE + column] } else { 0.0 };
        sides.iter().fold(old, |sum, side| chain(unit, sum, &side.row(row), &side.column(column)))
    }
}

#[test]
fn products_are_the_documented_chains() {
    for unit in units() {
        for steps in [0, 1, 3] {
            let sides = Sides::new(steps, 0);
            let words = sides.words(0, 32);
            for (rows, columns, add) in [(2, 2, false), (2, 2, true), (2, 1, true), (1, 2, false), (1, 1, true)] {
                let lhs =
                    TileLhs { at: sides.a.as_ptr().cast(), row_stride: 2 * sides.k, step: 64, second: 32 * sides.k };
                let rhs = TileRhs { at: words.as_ptr().cast(), row_stride: 128, step: 16 * 128 };
                let mut c = sides.old.clone();
                // SAFETY: the processor has the unit; `a` has 32 rows of `k` positions, `b` 32 columns, `c` 32 rows.
                unsafe {
                    unit.configure();
                    match (rows, columns) {
                        (2, 2) => unit.multiply::<2, 2>(steps, lhs, rhs, c.as_mut_ptr(), STRIDE, add),
                        (2, _) => unit.multiply::<2, 1>(steps, lhs, rhs, c.as_mut_ptr(), STRIDE, add),
                        (_, 2) => unit.multiply::<1, 2>(steps, lhs, rhs, c.as_mut_ptr(), STRIDE, add),
                        _ => unit.multiply::<1, 1>(steps, lhs, rhs, c.as_mut_ptr(), STRIDE, add),
                    }
                }
                for (i, found) in c.iter().enumerate() {
                    let (row, column) = (i / STRIDE, i % STRIDE);
                    let computed = row < TILE * rows && column < TILE * columns;
                    let expected =
                        if computed { Sides::expected(unit, &[&sides], add, row, column) } else { sides.old[i] };
                    assert_eq!(
                        *found, expected,
                        "{unit:?} {steps} steps, {rows}x{columns}, add {add}: {row}, {column}"
                    );
                }
            }
        }
    }
}

#[test]
fn segments_are_added_in_order() {
    let sides = [Sides::new(2, 5), Sides::new(1, 900), Sides::new(0, 1)];
    let (tiles, words): (Vec<_>, Vec<_>) = sides.iter().map(|side| (side.tiles(), side.words(0, 32))).unzip();
    let segments: Vec<Segment> = (0..sides.len())
        .map(|i| {
            let (a, b) = (tiles[i].as_ptr().cast::<u8>(), words[i].as_ptr().cast());
            let steps = sides[i].k / TILE_K;
            Segment { a, second: a.wrapping_add(steps * TILE_BYTES), b, steps, ahead: b }
        })
        .collect();
    for unit in units() {
        for (used, add, stream) in
            [(32, true, false), (19, false, false), (16, true, true), (7, false, true), (1, true, true)]
        {
            let mut c = sides[0].old.clone();
            // SAFETY: the processor has the unit; segments have two row tiles and 32 columns, `c` has 32 rows.
            unsafe {
                unit.configure();
                let to = c.as_mut_ptr();
                match (used > TILE, stream) {
                    (true, _) => unit.multiply_segments::<2, false>(used, &segments, to, STRIDE, add),
                    (false, true) => unit.multiply_segments::<1, true>(used, &segments, to, STRIDE, add),
                    (false, false) => unit.multiply_segments::<1, false>(used, &segments, to, STRIDE, add),
                }
            }
            let all: Vec<&Sides> = sides.iter().collect();
            for row in 0..used {
                for column in 0..32 {
                    let expected = Sides::expected(unit, &all, add, row, column);
                    assert_eq!(c[row * STRIDE + column], expected, "{unit:?} {used} rows at {row}, {column}");
                }
            }
            assert_eq!(c[32..STRIDE], sides[0].old[32..STRIDE], "beyond the columns");
        }
    }
}

/// Two blocks whose rows are elsewhere, at the same offset in each.
#[test]
fn blocks_may_be_anywhere() {
    let sides = Sides::new(2, 31);
    let offset = 3 * 64;
    let blocks: Vec<Vec<bf16>> = (0..2)
        .map(|block| {
            let rows = (0..32).flat_map(|row| sides.a[row * sides.k + block * TILE_K..][..TILE_K].iter().copied());
            std::iter::repeat_n(bf16::NAN, offset / 2).chain(rows).collect()
        })
        .collect();
    let at: Vec<*const u8> = blocks.iter().map(|block| block.as_ptr().cast()).collect();
    for unit in units() {
        for columns in [1, 2] {
            let words = sides.words(0, TILE * columns);
            for add in [false, true] {
                let width = TILE * columns;
                let old: Vec<f32> = (0..32 * width).map(|i| i as f32 / 7.0).collect();
                let mut c = old.clone();
                // SAFETY: the processor has the unit; blocks have 32 rows from `offset` on, `c` 32 rows of `width`.
                unsafe {
                    unit.configure();
                    let (b, to) = (words.as_ptr(), c.as_mut_ptr());
                    match columns {
                        1 => unit.multiply_blocks::<1>(&at, offset, b, to, add),
                        _ => unit.multiply_blocks::<2>(&at, offset, b, to, add),
                    }
                }
                for (i, found) in c.iter().enumerate() {
                    let (row, column) = (i / width, i % width);
                    let expected = chain(unit, if add { old[i] } else { 0.0 }, &sides.row(row), &sides.column(column));
                    assert_eq!(*found, expected, "{unit:?} {columns} column tiles, add {add}, at {row}, {column}");
                }
            }
        }
    }
}
