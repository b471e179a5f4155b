//! Weights packed once for [`super::gemm`]: panels of [`NR`] columns; in bf16 two consecutive `k` share a
//! 32-bit word (the lower `k` in the low half), so that one `vdpbf16ps`, or one shift and one mask in
//! AVX2, serves both.

use half::bf16;

use super::{Cpu, par_chunks};

/// Columns of a panel.
pub const NR: usize = 32;

/// Element type of the base weights and of the inputs of their products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// bfloat16, products accumulated in f32.
    Bf16,
    /// 32-bit floats.
    F32,
}

impl Dtype {
    /// As flags and logs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }

    /// Rounds to the type and back.
    pub fn round(self, x: f32) -> f32 {
        match self {
            Self::Bf16 => bf16::from_f32(x).to_f32(),
            Self::F32 => x,
        }
    }
}

/// A matrix `[n, k]` packed for `x · Wᵀ`.
#[derive(Clone)]
pub struct PackedMatrix {
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

impl PackedMatrix {
    /// Packs row-major matrices `[n_i, k]`, stacked.
    pub fn pack(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[&[f32]]) -> Self {
        let rows: Vec<&[f32]> = parts.iter().flat_map(|part| part.chunks_exact(k)).collect();
        let at = |row: usize, col: usize| rows.get(row).and_then(|r| r.get(col)).copied().unwrap_or(0.0);
        Self::build(cpu, dtype, rows.len(), k, at)
    }

    /// Packs the matrix `[n, k]` whose transpose `x[k, n]` is given.
    pub fn pack_transposed(cpu: &Cpu, dtype: Dtype, n: usize, x: &[f32]) -> Self {
        let k = x.len().checked_div(n).unwrap_or(0);
        let at = |row: usize, col: usize| if row < n && col < k { x[col * n + row] } else { 0.0 };
        Self::build(cpu, dtype, n, k, at)
    }

    /// The transpose, packed.
    pub fn transposed(&self, cpu: &Cpu) -> Self {
        let dtype = match &self.data {
            PackedData::Bf16(_) => Dtype::Bf16,
            PackedData::F32(_) => Dtype::F32,
        };
        let at = |row: usize, col: usize| if row < self.k && col < self.n { self.get(col, row) } else { 0.0 };
        Self::build(cpu, dtype, self.k, self.n, at)
    }

    fn build(cpu: &Cpu, dtype: Dtype, n: usize, k: usize, at: impl Fn(usize, usize) -> f32 + Sync) -> Self {
        let panels = n.div_ceil(NR);
        let data = match dtype {
            Dtype::Bf16 => {
                let k2 = k.div_ceil(2);
                let mut data = vec![0u32; panels * k2 * NR];
                par_chunks(&cpu.pool, &mut data, k2 * NR, |panel, words| {
                    for (p, words) in words.chunks_exact_mut(NR).enumerate() {
                        for (j, word) in words.iter_mut().enumerate() {
                            let row = panel * NR + j;
                            *word = pair(at(row, 2 * p), at(row, 2 * p + 1));
                        }
                    }
                });
                PackedData::Bf16(data)
            }
            Dtype::F32 => {
                let mut data = vec![0f32; panels * k * NR];
                par_chunks(&cpu.pool, &mut data, k * NR, |panel, values| {
                    for (p, values) in values.chunks_exact_mut(NR).enumerate() {
                        for (j, value) in values.iter_mut().enumerate() {
                            *value = at(panel * NR + j, p);
                        }
                    }
                });
                PackedData::F32(data)
            }
        };
        Self { n, k, data }
    }

    /// Element `[row, col]`, widened.
    pub fn get(&self, row: usize, col: usize) -> f32 {
        match &self.data {
            PackedData::Bf16(data) => {
                let word = data[(row / NR * self.k.div_ceil(2) + col / 2) * NR + row % NR];
                f32::from_bits(if col.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 })
            }
            PackedData::F32(data) => data[(row / NR * self.k + col) * NR + row % NR],
        }
    }

    /// Outputs.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Inputs.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Panels of [`NR`] outputs.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(NR)
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        match &self.data {
            PackedData::Bf16(_) => Dtype::Bf16,
            PackedData::F32(_) => Dtype::F32,
        }
    }
}

#[cfg(test)]
mod tests {
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
        let (n, k) = (45, 7);
        let w: Vec<f32> = (0..n * k).map(|i| i as f32 - 100.0).collect();
        for dtype in [Dtype::Bf16, Dtype::F32] {
            let packed = PackedMatrix::pack(&cpu, dtype, k, &[&w[..10 * k], &w[10 * k..]]);
            let transposed = packed.transposed(&cpu);
            let columns = PackedMatrix::pack_transposed(&cpu, dtype, k, &w);
            for row in 0..n {
                for col in 0..k {
                    let expected = dtype.round(w[row * k + col]);
                    assert_eq!(packed.get(row, col), expected);
                    assert_eq!(transposed.get(col, row), expected);
                    assert_eq!(columns.get(col, row), expected);
                }
            }
        }
    }
}
