//! Weights packed once for [`super::gemm`]: panels of [`NR`] columns; in bf16 two consecutive `k` share a
//! 32-bit word (the lower `k` in the low half), so that one `vdpbf16ps`, or one shift and one mask in
//! AVX2, reads both.

mod block_panels;
mod block_steps;
mod elements;
mod panel;
#[cfg(target_arch = "x86_64")]
mod step_avx2;
#[cfg(target_arch = "x86_64")]
mod step_avx512;
mod step_layout;
mod transpose;

#[cfg(target_arch = "x86_64")]
pub(super) use block_panels::FusedPanel;
pub(super) use block_panels::{BlockPanels, PartRows};
pub(super) use elements::NR;
use panel::{pack_panel, pair_rows, round_columns};
#[cfg(target_arch = "x86_64")]
pub(super) use step_avx2::{VECTORS, factors, pair};
#[cfg(target_arch = "x86_64")]
pub(super) use step_layout::{STEP_WORDS, StepLayout, by_format, prefetch_ahead};
use transpose::transpose;

use super::aligned::{AlignedVec, resident_bytes};
use super::parallel::par_chunks;
use super::tile_layout::TILE_K;
use super::{Cpu, Isa};
use crate::{Dtype, PlannedPart};

/// A matrix `[n, k]` packed for `x · Wᵀ`.
#[derive(Clone)]
pub(super) struct PackedMatrix {
    n: usize,
    k: usize,
    /// Rows of a panel: positions of `k`, or pairs of them, zeros beyond `k`.
    pub(super) depth: usize,
    pub(super) data: PackedData,
}

#[derive(Clone)]
pub(super) enum PackedData {
    /// Pairs of bf16: `[n / NR][depth][NR]`.
    Bf16(AlignedVec<u32>),
    /// Floats: `[n / NR][depth][NR]`.
    F32(AlignedVec<f32>),
    /// Blocks of a file, which kernels dequantize while they read them.
    Blocks(BlockPanels),
}

/// Positions of `k` that a bf16 matrix is filled up to with zeros: what one instruction multiplies.
pub(super) fn k_granule(isa: Isa) -> usize {
    if isa.multiplies_bf16() { TILE_K } else { 2 }
}

/// Rows of a panel.
fn depth(isa: Isa, dtype: Dtype, k: usize) -> usize {
    match dtype {
        Dtype::Bf16 => k.next_multiple_of(k_granule(isa)) / 2,
        Dtype::F32 => k,
    }
}

/// Writes the transpose of at most [`NR`] / 2 rows of words, pairs of positions of [`NR`] columns: `words` are as many rows, whose
/// columns are the positions.
pub(super) fn transpose_words(isa: Isa, from: &[[u32; NR]], words: &mut [u32]) {
    let mut block = [0; NR * NR / 2];
    let (to, _) = block.as_chunks_mut::<{ NR / 2 }>();
    for (from, to) in from.iter().zip(to.as_chunks_mut::<2>().0) {
        let [first, second] = to;
        pair_rows(isa, from, first, second);
    }
    transpose(isa, NR, words.len() / NR, &block, NR / 2, words, NR);
}

/// Runs `fill` for each panel of `len` elements, on all threads or on this one.
fn each_panel<T: Send>(cpu: &Cpu, parallel: bool, data: &mut [T], len: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    if parallel {
        par_chunks(&cpu.pool, data, len, fill);
    } else {
        data.chunks_mut(len.max(1)).enumerate().for_each(|(i, panel)| fill(i, panel));
    }
}

impl PackedMatrix {
    /// Packs row-major matrices `[n_i, k]`, stacked.
    pub(super) fn pack(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[&[f32]]) -> Self {
        Self::pack_on(cpu, dtype, k, parts, true)
    }

    /// Packs on all threads or on this one.
    pub(super) fn pack_on(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[&[f32]], parallel: bool) -> Self {
        let mut packed = Self::empty(cpu, dtype, parts.iter().map(|part| part.len() / k.max(1)).sum(), k);
        packed.repack(cpu, parts, parallel);
        packed
    }

    /// Keeps stacked parts of `k` columns, a multiple of the block size, in their blocks.
    pub(super) fn of_blocks(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[PartRows<'_>]) -> Self {
        let n = parts.iter().map(|part| part.count(k)).sum();
        let data = PackedData::Blocks(BlockPanels::pack(cpu, dtype, k, parts));
        Self { n, k, depth: depth(cpu.isa(), dtype, k), data }
    }

    /// The panels, if they are in blocks.
    pub(super) fn blocks(&self) -> Option<&BlockPanels> {
        if let PackedData::Blocks(panels) = &self.data { Some(panels) } else { None }
    }

    /// Repeats [`PackedMatrix::pack_on`] in place, with the matrix's extents.
    pub(super) fn repack(&mut self, cpu: &Cpu, parts: &[&[f32]], parallel: bool) {
        self.be_writable(cpu);
        let k = self.k;
        let rows: Vec<&[f32]> = parts.iter().flat_map(|part| part.chunks_exact(k.max(1))).collect();
        assert!(rows.len() == self.n, "other extents than the packed matrix has");
        let panel_rows = |panel: usize| &rows[panel * NR..rows.len().min((panel + 1) * NR)];
        self.for_panels(
            cpu,
            parallel,
            |panel, words| pack_panel(cpu, panel_rows(panel), words),
            |panel, values| pack_panel(cpu, panel_rows(panel), values),
        );
    }

    /// Packs the matrix `[n, k]` whose transpose `x[k, n]` is given.
    #[cfg(test)]
    pub(super) fn pack_transposed(cpu: &Cpu, dtype: Dtype, n: usize, x: &[f32]) -> Self {
        let mut packed = Self::empty(cpu, dtype, n, x.len().checked_div(n).unwrap_or(0));
        packed.repack_transposed(cpu, x, true);
        packed
    }

    /// Repeats [`PackedMatrix::pack_transposed`] in place, with the matrix's extents.
    pub(super) fn repack_transposed(&mut self, cpu: &Cpu, x: &[f32], parallel: bool) {
        self.be_writable(cpu);
        let n = self.n;
        assert!(x.len() == n * self.k, "other extents than the packed matrix has");
        self.for_panels(
            cpu,
            parallel,
            |panel, words| round_columns(cpu.isa(), x, n, panel * NR, words),
            |panel, values| {
                for (p, values) in values.chunks_exact_mut(NR).enumerate() {
                    let from = &x[p * n + panel * NR..p * n + ((panel + 1) * NR).min(n)];
                    values[..from.len()].copy_from_slice(from);
                }
            },
        );
    }

    pub(super) fn transposed(&self, cpu: &Cpu) -> Self {
        let mut t = Self::empty(cpu, self.dtype(), self.k, self.n);
        t.transpose_from(cpu, self, true);
        t
    }

    /// Overwrites it, `[n, k]`, with the transpose of `of`, `[k, n]`.
    pub(super) fn transpose_from(&mut self, cpu: &Cpu, of: &Self, parallel: bool) {
        let (k, n) = (of.k, of.n);
        assert!((self.n, self.k) == (k, n), "other extents than the packed matrix has");
        if let PackedData::Blocks(panels) = &of.data {
            return self.transpose_from(cpu, &panels.widened(cpu, of.n), parallel);
        }
        self.be_writable(cpu);
        self.for_panels(
            cpu,
            parallel,
            |panel, words| {
                let PackedData::Bf16(data) = &of.data else { return };
                let columns = (k.div_ceil(2) - panel * NR / 2).min(NR / 2);
                for (from, words) in data.chunks_exact(of.depth * NR).zip(words.chunks_mut(NR / 2 * NR)) {
                    let from = from[panel * NR / 2 * NR..].as_chunks::<NR>().0;
                    transpose_words(cpu.isa(), &from[..columns], words);
                }
            },
            |panel, values| {
                let PackedData::F32(data) = &of.data else { return };
                let columns = (k - panel * NR).min(NR);
                for (from, values) in data.chunks_exact(of.depth * NR).zip(values.chunks_mut(NR * NR)) {
                    transpose(cpu.isa(), columns, values.len() / NR, &from[panel * NR * NR..], NR, values, NR);
                }
            },
        );
    }

    /// A matrix of zeros.
    fn empty(cpu: &Cpu, dtype: Dtype, n: usize, k: usize) -> Self {
        let (panels, depth) = (n.div_ceil(NR), depth(cpu.isa(), dtype, k));
        let data = match dtype {
            Dtype::Bf16 => PackedData::Bf16(AlignedVec::zeros(panels * depth * NR)),
            Dtype::F32 => PackedData::F32(AlignedVec::zeros(panels * depth * NR)),
        };
        Self { n, k, depth, data }
    }

    /// Replaces blocks by zeros, which any elements can be written to.
    fn be_writable(&mut self, cpu: &Cpu) {
        if let PackedData::Blocks(panels) = &self.data {
            *self = Self::empty(cpu, panels.dtype(), self.n, self.k);
        }
    }

    /// Fills every panel, with the function for the element type. Elements beyond the matrix stay zero.
    fn for_panels(
        &mut self,
        cpu: &Cpu,
        parallel: bool,
        bf16: impl Fn(usize, &mut [u32]) + Sync,
        f32: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let panel = self.depth * NR;
        match &mut self.data {
            PackedData::Bf16(data) => each_panel(cpu, parallel, data, panel, bf16),
            PackedData::F32(data) => each_panel(cpu, parallel, data, panel, f32),
            PackedData::Blocks(_) => unreachable!("blocks were replaced before they are written"),
        }
    }

    /// Element `[row, col]`, as f32.
    pub(super) fn get(&self, row: usize, col: usize) -> f32 {
        match &self.data {
            PackedData::Bf16(data) => {
                let word = data[(row / NR * self.depth + col / 2) * NR + row % NR];
                f32::from_bits(if col.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 })
            }
            PackedData::F32(data) => data[(row / NR * self.depth + col) * NR + row % NR],
            PackedData::Blocks(panels) => panels.get(row, col),
        }
    }

    /// Writes a row, as f32, to `out`.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        let (panel, lane) = (row / NR, row % NR);
        match &self.data {
            PackedData::Bf16(data) => {
                let words = data[panel * self.depth * NR + lane..].iter().step_by(NR);
                for (out, word) in out.chunks_mut(2).zip(words) {
                    out[0] = f32::from_bits(word << 16);
                    if let Some(out) = out.get_mut(1) {
                        *out = f32::from_bits(word & 0xffff_0000);
                    }
                }
            }
            PackedData::F32(data) => {
                let values = data[panel * self.depth * NR + lane..].iter().step_by(NR);
                out.iter_mut().zip(values).for_each(|(out, value)| *out = *value);
            }
            PackedData::Blocks(panels) => panels.row(row, out),
        }
    }

    /// Bytes of the elements of a matrix `[n, k]`.
    pub(super) fn bytes_of(isa: Isa, dtype: Dtype, n: usize, k: usize) -> usize {
        resident_bytes(n.div_ceil(NR) * depth(isa, dtype, k) * NR * size_of::<u32>())
    }

    /// Bytes of a matrix of `k` columns that [`PackedMatrix::of_blocks`] makes of such parts.
    pub(super) fn block_bytes_of(dtype: Dtype, parts: &[PlannedPart], k: usize) -> usize {
        resident_bytes(BlockPanels::bytes_of(dtype, parts, k))
    }

    /// Bytes of memory that its elements take.
    pub(super) fn bytes(&self) -> usize {
        resident_bytes(match &self.data {
            PackedData::Bf16(data) => size_of_val(&data[..]),
            PackedData::F32(data) => size_of_val(&data[..]),
            PackedData::Blocks(panels) => panels.bytes(),
        })
    }

    /// All rows, as f32.
    pub(super) fn to_rows(&self, cpu: &Cpu) -> Vec<f32> {
        let k = self.k.max(1);
        let mut rows = vec![0.0; self.n * self.k];
        par_chunks(&cpu.pool, &mut rows, NR * k, |panel, rows| {
            for (lane, out) in rows.chunks_exact_mut(k).enumerate() {
                self.row(panel * NR + lane, out);
            }
        });
        rows
    }

    /// Number of rows: outputs.
    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// Number of columns: inputs.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    pub(super) fn dtype(&self) -> Dtype {
        match &self.data {
            PackedData::Bf16(_) => Dtype::Bf16,
            PackedData::F32(_) => Dtype::F32,
            PackedData::Blocks(panels) => panels.dtype(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    #[test]
    fn packing_keeps_every_element() {
        for cpu in Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa)) {
            for (n, k) in [(45, 7), (64, 70), (33, 64), (70, 301), (1, 1), (70, 4101)] {
                let w: Vec<f32> = (0..n * k).map(|i| i as f32 - 100.0).collect();
                for dtype in [Dtype::Bf16, Dtype::F32] {
                    check_packing(&cpu, dtype, n, k, &w);
                }
            }
        }
    }

    fn check_packing(cpu: &Cpu, dtype: Dtype, n: usize, k: usize, w: &[f32]) {
        let first = n / 4 * k;
        let mut packed = PackedMatrix::pack(cpu, dtype, k, &[&w[..first], &w[first..]]);
        let transposed = packed.transposed(cpu);
        let mut columns = PackedMatrix::pack_transposed(cpu, dtype, k, w);
        let check = |by_row: &PackedMatrix, by_column: &PackedMatrix, sign: f32| {
            let expected: Vec<f32> = w.iter().map(|x| dtype.round(x * sign)).collect();
            assert_eq!(by_row.to_rows(cpu), expected);
            for (i, expected) in expected.iter().enumerate() {
                assert_eq!(by_row.get(i / k, i % k), *expected);
                assert_eq!(by_column.get(i % k, i / k), *expected);
            }
        };
        check(&packed, &transposed, 1.0);
        check(&packed, &columns, 1.0);
        let negative: Vec<f32> = w.iter().map(|x| -x).collect();
        packed.repack(cpu, &[&negative], true);
        columns.repack_transposed(cpu, &negative, true);
        check(&packed, &columns, -1.0);
    }
}
