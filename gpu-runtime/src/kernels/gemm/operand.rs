//! The left side of a packed product: rows cut into tiles, each stored along `k`, so that a kernel reads it
//! as one stream.

use super::super::buffer::Buffer;
use super::super::packed::{Dtype, bf16_bits};
use super::super::vexp::multiversion;
use super::super::{Cpu, Isa, par_chunks, rows_per_task};
use super::tiles::{MR_BF16, MR_F32};

/// Rows `[rows, k]` in the form that the kernels read.
pub struct Operand {
    pub(super) data: OperandData,
    rows: usize,
    k: usize,
    /// Positions of `k` that are stored: even for bf16 weights.
    pub(super) stored_k: usize,
}

pub(super) enum OperandData {
    /// `[rows / MR_F32][stored_k][MR_F32]`.
    F32(Buffer<f32>),
    /// `[rows / MR_BF16][stored_k / 2][MR_BF16]` pairs, the lower `k` in the low half.
    Bf16(Buffer<u32>),
}

impl Operand {
    /// Converts rows `[rows, k]` for weights of type `dtype`.
    pub fn new(cpu: &Cpu, dtype: Dtype, x: &[f32], k: usize) -> Self {
        let mut operand = Self::empty(cpu, dtype, x.len().checked_div(k).unwrap_or(0), k);
        let (rows, stored_k, isa) = (operand.rows, operand.stored_k, cpu.isa());
        let height = operand.tile_rows();
        let tiles = rows_per_task(&cpu.pool, rows.div_ceil(height));
        let part = |i: usize| &x[i * tiles * height * k..((i + 1) * tiles * height * k).min(x.len())];
        match &mut operand.data {
            OperandData::F32(data) => par_chunks(&cpu.pool, data, tiles * stored_k * MR_F32, |i, out| {
                pack_f32(isa, part(i), k, stored_k, out);
            }),
            OperandData::Bf16(data) => par_chunks(&cpu.pool, data, tiles * stored_k / 2 * MR_BF16, |i, out| {
                pack_bf16(isa, part(i), k, out);
            }),
        }
        operand
    }

    /// Rows that `row` computes, given their number and room for `k` elements: they reach memory in the packed form alone.
    pub fn of_rows(cpu: &Cpu, dtype: Dtype, rows: usize, k: usize, row: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        let mut operand = Self::empty(cpu, dtype, rows, k);
        let (stored_k, isa, height) = (operand.stored_k, cpu.isa(), operand.tile_rows());
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
        match &mut operand.data {
            OperandData::F32(data) => {
                let size = stored_k * MR_F32;
                par_chunks(&cpu.pool, data, tiles * size, |task, out| {
                    each_tile(task, &mut |tile, x| pack_f32(isa, x, k, stored_k, &mut out[tile * size..][..size]));
                });
            }
            OperandData::Bf16(data) => {
                let size = stored_k / 2 * MR_BF16;
                par_chunks(&cpu.pool, data, tiles * size, |task, out| {
                    each_tile(task, &mut |tile, x| pack_bf16(isa, x, k, &mut out[tile * size..][..size]));
                });
            }
        }
        operand
    }

    /// As [`Operand::new`], on the calling thread when there are few rows.
    pub fn small(cpu: &Cpu, dtype: Dtype, x: &[f32], k: usize) -> Self {
        if x.len() > 1 << 12 {
            return Self::new(cpu, dtype, x, k);
        }
        let mut operand = Self::empty(cpu, dtype, x.len().checked_div(k).unwrap_or(0), k);
        operand.fill(cpu, x);
        operand
    }

    /// Room for rows that [`Operand::fill`] brings.
    pub fn empty(cpu: &Cpu, dtype: Dtype, rows: usize, k: usize) -> Self {
        let stored_k = match dtype {
            Dtype::Bf16 => k.next_multiple_of(2),
            Dtype::F32 => k,
        };
        let data = match cpu.input_type(dtype) {
            Dtype::Bf16 => OperandData::Bf16(cpu.word_buffer(rows.next_multiple_of(MR_BF16) * stored_k / 2)),
            Dtype::F32 => OperandData::F32(cpu.buffer(rows.next_multiple_of(MR_F32) * stored_k)),
        };
        Self { data, rows, k, stored_k }
    }

    /// Takes rows from `x`, on the calling thread; the tiles of rows that it has are overwritten whole.
    pub fn fill(&mut self, cpu: &Cpu, x: &[f32]) {
        match &mut self.data {
            OperandData::F32(data) => pack_f32(cpu.isa(), x, self.k, self.stored_k, data),
            OperandData::Bf16(data) => pack_bf16(cpu.isa(), x, self.k, data),
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Its rows, as they were rounded.
    pub fn to_rows(&self) -> Vec<f32> {
        let height = self.tile_rows();
        let at = |row: usize, p: usize| match &self.data {
            OperandData::F32(data) => data[(row / height * self.stored_k + p) * height + row % height],
            OperandData::Bf16(data) => {
                let word = data[(row / height * self.stored_k / 2 + p / 2) * height + row % height];
                f32::from_bits(if p.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 })
            }
        };
        (0..self.rows).flat_map(|row| (0..self.k).map(move |p| at(row, p))).collect()
    }

    /// Rows of a tile.
    pub(super) fn tile_rows(&self) -> usize {
        match &self.data {
            OperandData::F32(_) => MR_F32,
            OperandData::Bf16(_) => MR_BF16,
        }
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
            // SAFETY: `isa` says that AVX2 is there; the rows and the tile have `k` positions.
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
/// AVX2 is there, `x` has `6 * k` elements and `out` as many.
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

/// Packs rows of `k` elements as pairs; zeros where a tile has no row.
fn pack_bf16(isa: Isa, x: &[f32], k: usize, out: &mut [u32]) {
    let pairs = k.div_ceil(2);
    let mut words = vec![0u32; pairs];
    for (rows, tile) in x.chunks(MR_BF16 * k).zip(out.chunks_exact_mut(pairs * MR_BF16)) {
        if rows.len() < MR_BF16 * k {
            tile.fill(0);
        }
        for (i, row) in rows.chunks_exact(k).enumerate() {
            round_row(isa, row, &mut words);
            for (out, word) in tile.chunks_exact_mut(MR_BF16).zip(&words) {
                out[i] = *word;
            }
        }
    }
}

multiversion! {
    fn round_row(x: &[f32], out: &mut [u32]) {
        let mut pairs = x.chunks_exact(2);
        for (pair, out) in (&mut pairs).zip(out.iter_mut()) {
            *out = u32::from(bf16_bits(pair[0])) | u32::from(bf16_bits(pair[1])) << 16;
        }
        if let ([last], Some(out)) = (pairs.remainder(), out.last_mut()) {
            *out = u32::from(bf16_bits(*last));
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
                    let made = [Operand::new(&cpu, dtype, &x, k), Operand::of_rows(&cpu, dtype, rows, k, copy)];
                    for operand in made {
                        assert_eq!(operand.to_rows(), x, "{isa:?} {dtype:?} {rows}x{k}");
                        let height = operand.tile_rows();
                        for row in 0..rows.next_multiple_of(height) {
                            for p in 0..operand.stored_k {
                                let tile = row / height * operand.stored_k * height;
                                let found = match &operand.data {
                                    OperandData::F32(data) => data[tile + p * height + row % height],
                                    OperandData::Bf16(data) => {
                                        let word = data[tile / 2 + p / 2 * height + row % height];
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
