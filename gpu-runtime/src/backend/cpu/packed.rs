//! Weights packed once for [`super::gemm`]: panels of [`NR`] columns; in bf16 two consecutive `k` share a
//! 32-bit word (the lower `k` in the low half), so that one `vdpbf16ps`, or one shift and one mask in
//! AVX2, reads both.

use super::Cpu;
use super::parallel::par_chunks;
use crate::backend::Dtype;

/// Columns of a panel.
pub(super) const NR: usize = 32;

/// A matrix `[n, k]` packed for `x · Wᵀ`.
#[derive(Clone)]
pub(super) struct PackedMatrix {
    n: usize,
    k: usize,
    pub(super) data: PackedData,
}

#[derive(Clone)]
pub(super) enum PackedData {
    /// `[n / NR][k / 2][NR]` pairs.
    Bf16(Vec<u32>),
    /// `[n / NR][k][NR]`.
    F32(Vec<f32>),
}

/// Rounds to the nearest bf16, ties to even, without a branch so that loops over it vectorise.
#[inline(always)]
pub(super) fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    if x.is_nan() { nan as u16 } else { rounded as u16 }
}

fn pair(low: f32, high: f32) -> u32 {
    u32::from(bf16_bits(low)) | u32::from(bf16_bits(high)) << 16
}

/// Positions of `k` that are packed together, so that the destination stays in the first-level cache.
const BLOCK: usize = 32;

impl PackedMatrix {
    /// Packs row-major matrices `[n_i, k]`, stacked.
    pub(super) fn pack(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[&[f32]]) -> Self {
        let mut packed = Self::empty(dtype, parts.iter().map(|part| part.len() / k.max(1)).sum(), k);
        packed.repack(cpu, parts);
        packed
    }

    /// As [`PackedMatrix::pack`] with the extents that it has, in place.
    pub(super) fn repack(&mut self, cpu: &Cpu, parts: &[&[f32]]) {
        let k = self.k;
        let rows: Vec<&[f32]> = parts.iter().flat_map(|part| part.chunks_exact(k.max(1))).collect();
        assert!(rows.len() == self.n, "other extents than the packed matrix has");
        self.for_panels(
            cpu,
            |panel, words| {
                let rows = rows.iter().skip(panel * NR).take(NR).enumerate();
                for first in (0..k).step_by(BLOCK) {
                    for (j, row) in rows.clone() {
                        let row = &row[first..(first + BLOCK).min(k)];
                        for (p, x) in row.chunks(2).enumerate() {
                            let high = x.get(1).copied().unwrap_or(0.0);
                            words[(first / 2 + p) * NR + j] = pair(x[0], high);
                        }
                    }
                }
            },
            |panel, values| {
                let rows = rows.iter().skip(panel * NR).take(NR).enumerate();
                for first in (0..k).step_by(BLOCK) {
                    for (j, row) in rows.clone() {
                        for (p, x) in row[first..(first + BLOCK).min(k)].iter().enumerate() {
                            values[(first + p) * NR + j] = *x;
                        }
                    }
                }
            },
        );
    }

    /// Packs the matrix `[n, k]` whose transpose `x[k, n]` is given.
    #[cfg(test)]
    pub(super) fn pack_transposed(cpu: &Cpu, dtype: Dtype, n: usize, x: &[f32]) -> Self {
        let mut packed = Self::empty(dtype, n, x.len().checked_div(n).unwrap_or(0));
        packed.repack_transposed(cpu, x);
        packed
    }

    /// As [`PackedMatrix::pack_transposed`] with the extents that it has, in place.
    pub(super) fn repack_transposed(&mut self, cpu: &Cpu, x: &[f32]) {
        let (n, k) = (self.n, self.k);
        assert!(x.len() == n * k, "other extents than the packed matrix has");
        let columns = |p: usize, panel: usize| &x[p * n + panel * NR..p * n + ((panel + 1) * NR).min(n)];
        self.for_panels(
            cpu,
            |panel, words| {
                for (p, words) in words.chunks_exact_mut(NR).enumerate() {
                    let low = columns(2 * p, panel);
                    if 2 * p + 1 < k {
                        for ((word, low), high) in words.iter_mut().zip(low).zip(columns(2 * p + 1, panel)) {
                            *word = pair(*low, *high);
                        }
                    } else {
                        for (word, low) in words.iter_mut().zip(low) {
                            *word = pair(*low, 0.0);
                        }
                    }
                }
            },
            |panel, values| {
                for (p, values) in values.chunks_exact_mut(NR).enumerate() {
                    let from = columns(p, panel);
                    values[..from.len()].copy_from_slice(from);
                }
            },
        );
    }

    /// The transpose, packed.
    pub(super) fn transposed(&self, cpu: &Cpu) -> Self {
        let mut t = Self::empty(self.dtype(), self.k, self.n);
        t.transpose_from(cpu, self);
        t
    }

    /// Overwrites it, `[n, k]`, with the transpose of `of`, `[k, n]`.
    pub(super) fn transpose_from(&mut self, cpu: &Cpu, of: &Self) {
        let (k, n) = (of.k, of.n);
        assert!((self.n, self.k) == (k, n), "other extents than the packed matrix has");
        self.for_panels(
            cpu,
            |panel, words| {
                let PackedData::Bf16(data) = &of.data else { return };
                // Word (p, j) of `t` holds rows 2p and 2p + 1 of column `panel * NR + j`; two columns share words here.
                for (p, words) in words.chunks_exact_mut(NR).enumerate() {
                    let (from, lane) = (2 * p / NR * k.div_ceil(2) + panel * NR / 2, 2 * p % NR);
                    let both = 2 * p + 1 < n;
                    let columns = (k - panel * NR).min(NR);
                    for (j, words) in words[..columns].chunks_mut(2).enumerate() {
                        let a = data[(from + j) * NR + lane];
                        let b = if both { data[(from + j) * NR + lane + 1] } else { 0 };
                        words[0] = (a & 0xffff) | b << 16;
                        if let Some(odd) = words.get_mut(1) {
                            *odd = a >> 16 | b & 0xffff_0000;
                        }
                    }
                }
            },
            |panel, values| {
                let PackedData::F32(data) = &of.data else { return };
                for (p, values) in values.chunks_exact_mut(NR).enumerate() {
                    let (from, lane) = (p / NR * k + panel * NR, p % NR);
                    let columns = (k - panel * NR).min(NR);
                    for (j, value) in values[..columns].iter_mut().enumerate() {
                        *value = data[(from + j) * NR + lane];
                    }
                }
            },
        );
    }

    /// A matrix of zeros.
    fn empty(dtype: Dtype, n: usize, k: usize) -> Self {
        let panels = n.div_ceil(NR);
        let data = match dtype {
            Dtype::Bf16 => PackedData::Bf16(vec![0; panels * k.div_ceil(2) * NR]),
            Dtype::F32 => PackedData::F32(vec![0.0; panels * k * NR]),
        };
        Self { n, k, data }
    }

    /// Fills every panel on all threads, with the function for the element type. Elements beyond the matrix stay zero.
    fn for_panels(
        &mut self,
        cpu: &Cpu,
        bf16: impl Fn(usize, &mut [u32]) + Sync,
        f32: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let k = self.k;
        match &mut self.data {
            PackedData::Bf16(data) => par_chunks(&cpu.pool, data, k.div_ceil(2) * NR, bf16),
            PackedData::F32(data) => par_chunks(&cpu.pool, data, k * NR, f32),
        }
    }

    /// Element `[row, col]`, as f32.
    pub(super) fn get(&self, row: usize, col: usize) -> f32 {
        match &self.data {
            PackedData::Bf16(data) => {
                let word = data[(row / NR * self.k.div_ceil(2) + col / 2) * NR + row % NR];
                f32::from_bits(if col.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 })
            }
            PackedData::F32(data) => data[(row / NR * self.k + col) * NR + row % NR],
        }
    }

    /// Writes a row, as f32, to `out`.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        for (col, out) in out.iter_mut().enumerate() {
            *out = self.get(row, col);
        }
    }

    /// Bytes of the elements of a matrix `[n, k]`.
    pub(super) fn bytes_of(dtype: Dtype, n: usize, k: usize) -> usize {
        let rows = match dtype {
            Dtype::Bf16 => k.div_ceil(2),
            Dtype::F32 => k,
        };
        n.div_ceil(NR) * rows * NR * size_of::<u32>()
    }

    /// Bytes of its elements.
    pub(super) fn bytes(&self) -> usize {
        match &self.data {
            PackedData::Bf16(data) => size_of_val(&data[..]),
            PackedData::F32(data) => size_of_val(&data[..]),
        }
    }

    /// All rows, as f32.
    pub(super) fn to_rows(&self) -> Vec<f32> {
        let mut rows = vec![0.0; self.n * self.k];
        for (row, out) in rows.chunks_exact_mut(self.k.max(1)).enumerate() {
            self.row(row, out);
        }
        rows
    }

    /// Rows: outputs.
    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// Columns: inputs.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    pub(super) fn dtype(&self) -> Dtype {
        match &self.data {
            PackedData::Bf16(_) => Dtype::Bf16,
            PackedData::F32(_) => Dtype::F32,
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn rounding_is_that_of_the_format() {
        let edges =
            [0.0, -0.0, 1.0, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, f32::NEG_INFINITY, 1.003_906_3, 1.011_718_8];
        let some = (0..100_000u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761))).filter(|x| !x.is_nan());
        for x in edges.into_iter().chain(some) {
            assert_eq!(bf16_bits(x), bf16::from_f32(x).to_bits(), "{x}");
        }
        assert!(bf16::from_bits(bf16_bits(f32::NAN)).is_nan());
    }

    #[test]
    fn packing_keeps_every_element() {
        let cpu = Cpu::new(2);
        for (n, k) in [(45, 7), (64, 70), (33, 64), (1, 1)] {
            let w: Vec<f32> = (0..n * k).map(|i| i as f32 - 100.0).collect();
            let first = n / 4 * k;
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let mut packed = PackedMatrix::pack(&cpu, dtype, k, &[&w[..first], &w[first..]]);
                let transposed = packed.transposed(&cpu);
                let mut columns = PackedMatrix::pack_transposed(&cpu, dtype, k, &w);
                let check = |by_row: &PackedMatrix, by_column: &PackedMatrix, sign: f32| {
                    for row in 0..n {
                        for col in 0..k {
                            let expected = dtype.round(w[row * k + col] * sign);
                            assert_eq!(by_row.get(row, col), expected);
                            assert_eq!(by_column.get(col, row), expected);
                        }
                    }
                };
                check(&packed, &transposed, 1.0);
                check(&packed, &columns, 1.0);
                let negative: Vec<f32> = w.iter().map(|x| -x).collect();
                packed.repack(&cpu, &[&negative]);
                columns.repack_transposed(&cpu, &negative);
                check(&packed, &columns, -1.0);
            }
        }
    }
}
