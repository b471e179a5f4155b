//! The left side of a GEMM: rows cut into tiles, each stored along `k`, so that a kernel reads it as one stream.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::super::avx512::round;
use super::super::buffer::Buffer;
use super::super::packed::k_granule;
use super::super::parallel::{par_chunks, rows_per_task};
use super::super::tile_layout::{TILE, TILE_K};
use super::super::vexp::multiversion;
use super::super::{Cpu, Isa};
use super::tiles::MR_F32;
use crate::Dtype;

/// Rows `[rows, k]` in the form that the kernels read.
pub struct PackedLhs {
    pub(super) data: LhsData,
    rows: usize,
    k: usize,
    /// Positions of `k` that are stored, zeros beyond `k`: for bf16 weights a multiple of [`k_granule`].
    pub(super) stored_k: usize,
    /// The result of [`PackedLhs::has_no_tiny`], once it was computed.
    has_no_tiny: OnceLock<bool>,
}

pub(super) enum LhsData {
    /// Floats: `[rows / MR_F32][stored_k][MR_F32]`.
    F32(Buffer<f32>),
    /// `[rows / TILE][stored_k / TILE_K][TILE][TILE_K / 2]` pairs of bf16, the lower `k` in the low half: tiles.
    Tiles(Buffer<u32>),
}

impl PackedLhs {
    /// Converts rows `[rows, k]` for weights of type `dtype`.
    pub fn new(cpu: &Cpu, dtype: Dtype, x: &[f32], k: usize) -> Self {
        let mut lhs = Self::empty(cpu, dtype, x.len().checked_div(k).unwrap_or(0), k);
        let (rows, stored_k, isa) = (lhs.rows, lhs.stored_k, cpu.isa());
        let height = lhs.tile_rows();
        let tiles = rows_per_task(&cpu.pool, rows.div_ceil(height));
        let part = |i: usize| &x[i * tiles * height * k..((i + 1) * tiles * height * k).min(x.len())];
        match &mut lhs.data {
            LhsData::F32(data) => par_chunks(&cpu.pool, data, tiles * stored_k * MR_F32, |i, out| {
                pack_f32(isa, part(i), k, stored_k, out);
            }),
            LhsData::Tiles(data) => par_chunks(&cpu.pool, data, tiles * stored_k / 2 * TILE, |i, out| {
                pack_tiles(part(i), k, stored_k, out);
            }),
        }
        lhs
    }

    /// Rows that `row` computes, given their index and a buffer of `k` elements: only their packed form is stored.
    pub fn of_rows(cpu: &Cpu, dtype: Dtype, rows: usize, k: usize, row: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        let mut lhs = Self::empty(cpu, dtype, rows, k);
        let (stored_k, isa, height) = (lhs.stored_k, cpu.isa(), lhs.tile_rows());
        let tiles = rows_per_task(&cpu.pool, rows.div_ceil(height));
        let each_tile = |task: usize, pack: &mut dyn FnMut(usize, &[f32])| {
            let mut x = cpu.buffer(height * k);
            let first = task * tiles;
            for tile in first..(first + tiles).min(rows.div_ceil(height)) {
                let count = height.min(rows - tile * height);
                for (i, x) in x.chunks_exact_mut(k).take(count).enumerate() {
                    row(tile * height + i, x);
                }
                pack(tile - first, &x[..count * k]);
            }
        };
        match &mut lhs.data {
            LhsData::F32(data) => {
                let size = stored_k * MR_F32;
                par_chunks(&cpu.pool, data, tiles * size, |task, out| {
                    each_tile(task, &mut |tile, x| pack_f32(isa, x, k, stored_k, &mut out[tile * size..][..size]));
                });
            }
            LhsData::Tiles(data) => {
                let size = stored_k / 2 * TILE;
                par_chunks(&cpu.pool, data, tiles * size, |task, out| {
                    each_tile(task, &mut |tile, x| pack_tiles(x, k, stored_k, &mut out[tile * size..][..size]));
                });
            }
        }
        lhs
    }

    /// Like [`PackedLhs::new`], but on the calling thread when there are few rows.
    pub fn small(cpu: &Cpu, dtype: Dtype, x: &[f32], k: usize) -> Self {
        if x.len() > 1 << 12 {
            return Self::new(cpu, dtype, x, k);
        }
        let mut lhs = Self::empty(cpu, dtype, x.len().checked_div(k).unwrap_or(0), k);
        lhs.fill(cpu, x);
        lhs
    }

    /// `rows` rows that [`PackedLhs::fill`] is to write: until then their elements are anything.
    pub fn empty(cpu: &Cpu, dtype: Dtype, rows: usize, k: usize) -> Self {
        let stored_k = match dtype {
            Dtype::Bf16 => k.next_multiple_of(k_granule(cpu.isa())),
            Dtype::F32 => k,
        };
        let data = match cpu.input_type(dtype) {
            Dtype::Bf16 => LhsData::Tiles(cpu.word_buffer(rows.next_multiple_of(TILE) * stored_k / 2)),
            Dtype::F32 => LhsData::F32(cpu.buffer(rows.next_multiple_of(MR_F32) * stored_k)),
        };
        Self { data, rows, k, stored_k, has_no_tiny: OnceLock::new() }
    }

    /// Packs the rows of `x` as the first rows, on the calling thread. A last tile that they fill in part has zeros in its
    /// other rows.
    pub fn fill(&mut self, cpu: &Cpu, x: &[f32]) {
        self.has_no_tiny = OnceLock::new();
        match &mut self.data {
            LhsData::F32(data) => pack_f32(cpu.isa(), x, self.k, self.stored_k, data),
            LhsData::Tiles(data) => pack_tiles(x, self.k, self.stored_k, data),
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The packed rows, with the rounding of packing.
    pub fn to_rows(&self) -> Vec<f32> {
        let height = self.tile_rows();
        let half =
            |word: u32, p: usize| f32::from_bits(if p.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 });
        let at = |row: usize, p: usize| match &self.data {
            LhsData::F32(data) => data[(row / height * self.stored_k + p) * height + row % height],
            LhsData::Tiles(data) => {
                let tile = row / TILE * (self.stored_k / TILE_K) + p / TILE_K;
                half(data[(tile * TILE + row % TILE) * (TILE_K / 2) + p % TILE_K / 2], p)
            }
        };
        (0..self.rows).flat_map(|row| (0..self.k).map(move |p| at(row, p))).collect()
    }

    /// Whether it is not in tiles and all elements are zero or so large, 2⁻¹⁰⁰ or more, that products with weights of blocks are
    /// multiples of the least f32.
    pub(super) fn has_no_tiny(&self, isa: Isa) -> bool {
        *self.has_no_tiny.get_or_init(|| match &self.data {
            LhsData::F32(data) => least_bits(isa, data) >= LEAST.to_bits() - 1,
            LhsData::Tiles(_) => false,
        })
    }

    /// Rows of a tile.
    pub(super) fn tile_rows(&self) -> usize {
        match &self.data {
            LhsData::F32(_) => MR_F32,
            LhsData::Tiles(_) => TILE,
        }
    }

    /// Whether it is in tiles.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn is_tiled(&self) -> bool {
        matches!(self.data, LhsData::Tiles(_))
    }

    /// Positions of `k` at whose multiples a part may begin.
    pub fn k_granule(&self) -> usize {
        match &self.data {
            LhsData::F32(_) => 2,
            LhsData::Tiles(_) => TILE_K,
        }
    }
}

/// 2⁻¹⁰⁰. Elements in blocks are multiples of 2⁻²⁴, the least f16, and floats from this one on are multiples of 2⁻¹²³.
const LEAST: f32 = f32::from_bits((127 - 100) << 23);

multiversion! {
    /// The bits of the least magnitude but zero, less one.
    fn least_bits(x: &[f32]) -> u32 {
        x.iter().fold(u32::MAX, |least, x| least.min((x.to_bits() & 0x7fff_ffff).wrapping_sub(1)))
    }
}

/// Packs rows of `k` elements; zeros where a tile has no row and beyond `k`.
fn pack_f32(isa: Isa, x: &[f32], k: usize, stored_k: usize, out: &mut [f32]) {
    for (rows, tile) in x.chunks(MR_F32 * k).zip(out.chunks_exact_mut(stored_k * MR_F32)) {
        let mut done = 0;
        if rows.len() < MR_F32 * k {
            tile.fill(0.0);
        } else {
            tile[k * MR_F32..].fill(0.0);
        }
        #[cfg(target_arch = "x86_64")]
        if isa != Isa::Portable && rows.len() == MR_F32 * k {
            // SAFETY: `isa` is one that the processor has; the rows and the tile have `k` positions.
            done = unsafe { transpose6_avx2(rows.as_ptr(), k, tile.as_mut_ptr()) };
        }
        for (i, row) in rows.chunks_exact(k).enumerate() {
            for (p, x) in row.iter().enumerate().skip(done) {
                tile[p * MR_F32 + i] = *x;
            }
        }
    }
}

/// Transposes six rows of `k` elements up to the last multiple of eight, which it returns.
///
/// # Safety
/// The processor has AVX2; `x` has `6 * k` elements and `out` as many.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn transpose6_avx2(x: *const f32, k: usize, out: *mut f32) -> usize {
    use std::arch::x86_64::*;
    let end = k / 8 * 8;
    for p in (0..end).step_by(8) {
        // SAFETY: positions p to p + 8 of the six rows and of the tile are in bounds.
        unsafe {
            let row = |i: usize| _mm256_loadu_ps(x.add(i * k + p));
            let (r0, r1, r2, r3, r4, r5) = (row(0), row(1), row(2), row(3), row(4), row(5));
            let (a, b) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
            let (c, d) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
            // Rows 0 to 3 of positions (0, 4), (1, 5), (2, 6) and (3, 7).
            let fours = [
                _mm256_shuffle_ps::<0x44>(a, c),
                _mm256_shuffle_ps::<0xee>(a, c),
                _mm256_shuffle_ps::<0x44>(b, d),
                _mm256_shuffle_ps::<0xee>(b, d),
            ];
            // Rows 4 and 5 of positions (0, 1, 4, 5) and (2, 3, 6, 7).
            let twos = [_mm256_unpacklo_ps(r4, r5), _mm256_unpackhi_ps(r4, r5)];
            for (j, four) in fours.into_iter().enumerate() {
                let (low, high) = (out.add((p + j) * MR_F32), out.add((p + j + 4) * MR_F32));
                _mm_storeu_ps(low, _mm256_castps256_ps128(four));
                _mm_storeu_ps(high, _mm256_extractf128_ps::<1>(four));
                let two = twos[j / 2];
                let (l, h) = (_mm256_castps256_ps128(two), _mm256_extractf128_ps::<1>(two));
                if j % 2 == 0 {
                    _mm_storel_pd(low.add(4).cast(), _mm_castps_pd(l));
                    _mm_storel_pd(high.add(4).cast(), _mm_castps_pd(h));
                } else {
                    _mm_storeh_pd(low.add(4).cast(), _mm_castps_pd(l));
                    _mm_storeh_pd(high.add(4).cast(), _mm_castps_pd(h));
                }
            }
        }
    }
    end
}

/// Packs rows of `k` elements as tiles; zeros where a tile has no row and beyond `k`.
fn pack_tiles(x: &[f32], k: usize, stored_k: usize, out: &mut [u32]) {
    if k == 0 {
        return;
    }
    for (rows, tiles) in x.chunks(TILE * k).zip(out.chunks_exact_mut(TILE * stored_k / 2)) {
        if rows.len() < TILE * k {
            tiles.fill(0);
        }
        for (i, row) in rows.chunks_exact(k).enumerate() {
            // SAFETY: left sides are tiles only where the processor has AVX-512 BF16.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                round_tile_row(row, i, tiles);
            }
        }
    }
}

/// Rounds a row to bf16 as row `i` of `tiles`, to nearest even; denormals become zero, as which tiles take them anyway.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn round_tile_row(row: &[f32], i: usize, tiles: &mut [u32]) {
    use std::arch::x86_64::*;
    let rows = tiles.as_chunks_mut::<{ TILE_K / 2 }>().0.iter_mut().skip(i).step_by(TILE);
    let (parts, rest) = row.as_chunks::<TILE_K>();
    let mut whole = [0.0; TILE_K];
    whole[..rest.len()].copy_from_slice(rest);
    let last = if rest.is_empty() { None } else { Some(&whole) };
    for (part, words) in parts.iter().chain(last).zip(rows) {
        // SAFETY: 32 elements are read and 64 bytes written, unaligned.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(part.as_ptr()), _mm512_loadu_ps(part.as_ptr().add(16)));
            _mm512_storeu_si512(words.as_mut_ptr().cast(), round(low, high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_hold_every_element_and_zeros_elsewhere() {
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for (rows, k) in [(1, 1), (5, 3), (6, 8), (13, 17), (26, 40)] {
                // Exact in bf16.
                let x: Vec<f32> = (0..rows * k).map(|i| (i % 120) as f32 + 1.0).collect();
                let copy = |row: usize, out: &mut [f32]| out.copy_from_slice(&x[row * k..][..k]);
                for dtype in [Dtype::Bf16, Dtype::F32] {
                    let made = [PackedLhs::new(&cpu, dtype, &x, k), PackedLhs::of_rows(&cpu, dtype, rows, k, copy)];
                    for lhs in made {
                        assert_eq!(lhs.to_rows(), x, "{isa:?} {dtype:?} {rows}x{k}");
                        let height = lhs.tile_rows();
                        for row in 0..rows.next_multiple_of(height) {
                            for p in 0..lhs.stored_k {
                                let tile = row / height * lhs.stored_k * height;
                                let found = match &lhs.data {
                                    LhsData::F32(data) => data[tile + p * height + row % height],
                                    LhsData::Tiles(data) => {
                                        let row_at = tile / 2 + (p / TILE_K * TILE + row % TILE) * (TILE_K / 2);
                                        let word = data[row_at + p % TILE_K / 2];
                                        f32::from_bits(if p % 2 == 0 { word << 16 } else { word & 0xffff_0000 })
                                    }
                                };
                                let expected = if row < rows && p < k { x[row * k + p] } else { 0.0 };
                                assert_eq!(found, expected, "{isa:?} {dtype:?} {rows}x{k} at {row}, {p}");
                            }
                        }
                    }
                }
            }
        }
    }
}
