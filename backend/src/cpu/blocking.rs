//! Sizes of blocks, chosen at the start from the processor's caches and the kernel class.

use super::Isa;
use crate::{BALANCED_ROWS, Dtype, MicrobatchRows};

/// Bytes that the second-level cache is taken to have where the processor does not tell.
const DEFAULT_L2: usize = 1 << 20;

/// Bytes of a row of the left side of a wide GEMM: 1,536 inputs in bf16.
const WIDE_ROW: usize = 3 << 10;
/// Least and most rows of a microbatch for kernels with tiles, and what they are a multiple of.
const TILED_ROWS: (usize, usize, usize) = (128, 256, 128);
/// Rows of a microbatch for kernels whose blocks have a fixed height.
const FIXED_ROWS: usize = 256;

/// Rows of bf16 weights that tiles multiply in about the time in which a core reads the weights.
const BALANCED_TILED_ROWS: usize = 64;
/// The same with AVX-512, on processors that multiply 512 bits in two halves.
const BALANCED_PAIRED_ROWS: usize = 8;
/// The same with AVX2, where each weight is widened and then multiplied in lanes of eight.
const BALANCED_WIDENED_ROWS: usize = 4;
/// The same in plain Rust.
const BALANCED_PORTABLE_ROWS: usize = 2;

/// Division of work: GEMMs into blocks, examples into microbatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Bytes of the second-level cache of a core.
    pub l2_bytes: usize,
    /// Maximum bytes of the left side of a block of AMX tiles; `None` for kernels whose blocks have a fixed height.
    pub lhs_bytes: Option<usize>,
    /// Kernel class, on which the time of a row depends.
    isa: Isa,
}

impl Blocking {
    /// Returns the blocking of a kernel class on this processor. With AMX a block's left side takes three eighths of
    /// the second-level cache: it is read once for each strip of weights, together with that strip, the next one and
    /// the sums.
    pub fn detect(isa: Isa) -> Self {
        Self::new(isa, l2_bytes().unwrap_or(DEFAULT_L2))
    }

    fn new(isa: Isa, l2_bytes: usize) -> Self {
        Self { l2_bytes, lhs_bytes: isa.has_amx().then_some(l2_bytes / 8 * 3), isa }
    }

    /// Returns the default number of rows of microbatches with weights of a type.
    ///
    /// Where bf16 is multiplied in tiles, a microbatch has as many rows as a block of a wide GEMM, so that each weight
    /// is read once. Training gains from more rows, at the price of memory for activations. Other kernels multiply
    /// several times more slowly, and gain little.
    pub fn microbatch(&self, dtype: Dtype) -> MicrobatchRows {
        match self.lhs_bytes {
            Some(bytes) if dtype == Dtype::Bf16 => {
                let (least, most, step) = TILED_ROWS;
                MicrobatchRows::of_all((bytes / WIDE_ROW / step * step).clamp(least, most))
            }
            _ => MicrobatchRows::of_all(FIXED_ROWS),
        }
    }

    /// Returns the number of rows whose computation takes about as long as reading the weights.
    pub fn balanced_rows(&self, dtype: Dtype) -> usize {
        match (self.isa, dtype) {
            (Isa::Portable, _) => BALANCED_PORTABLE_ROWS,
            (Isa::Avx2, _) => BALANCED_WIDENED_ROWS,
            (Isa::AmxBf16, Dtype::Bf16) => BALANCED_TILED_ROWS,
            (Isa::Avx512Bf16, Dtype::Bf16) => BALANCED_PAIRED_ROWS,
            (Isa::Avx512Bf16 | Isa::AmxBf16, Dtype::F32) => BALANCED_ROWS,
        }
    }

    /// Returns a description for logs, for weights of type `dtype`.
    pub fn describe(&self, dtype: Dtype) -> String {
        let (l2, MicrobatchRows { training, forward }) = (self.l2_bytes >> 10, self.microbatch(dtype));
        let blocks = match self.lhs_bytes {
            Some(bytes) => format!("of {} KiB of the left side", bytes >> 10),
            None => "of fixed height".to_owned(),
        };
        format!(
            "L2 cache {l2} KiB, GEMM blocks {blocks}, microbatches of {training} rows in training, {forward} in forward passes"
        )
    }
}

/// Bytes of the second-level cache by CPUID's deterministic cache parameters: leaf 4 of Intel's processors, and
/// 0x8000001D of AMD's, which has the same form.
#[cfg(target_arch = "x86_64")]
fn l2_bytes() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const LEAVES: [(u32, u32); 2] = [(0, 4), (0x8000_0000, 0x8000_001d)];
    let exists = |(base, leaf): &(u32, u32)| __cpuid(*base).eax >= *leaf;
    let caches =
        LEAVES.iter().filter(|leaf| exists(leaf)).flat_map(|(_, leaf)| (0..8).map(|i| __cpuid_count(*leaf, i)));
    let mut l2 = caches.filter(|cache| {
        let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
        matches!(kind, 1 | 3) && level == 2
    });
    l2.next().map(|cache| {
        let field = |shift: u32, bits: u32| (cache.ebx >> shift & ((1 << bits) - 1)) as usize + 1;
        field(22, 10) * field(12, 10) * field(0, 12) * (cache.ecx as usize + 1)
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn l2_bytes() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_the_cache_that_the_processor_reports() {
        for isa in Isa::available() {
            let blocking = Blocking::detect(isa);
            assert!((64 << 10..=64 << 20).contains(&blocking.l2_bytes), "{blocking:?}");
            assert!(blocking.lhs_bytes.is_none_or(|bytes| bytes > 0 && bytes < blocking.l2_bytes / 2));
            assert!(blocking.describe(Dtype::Bf16).contains(&format!("L2 cache {} KiB", blocking.l2_bytes / 1024)));
        }
    }

    #[test]
    fn slower_kernels_balance_fewer_rows() {
        let rows = |dtype| Isa::ALL.map(|isa| Blocking::new(isa, 1 << 20).balanced_rows(dtype));
        assert_eq!(rows(Dtype::Bf16), [64, 8, 4, 2]);
        assert_eq!(rows(Dtype::F32), [16, 16, 4, 2], "without tiles");
    }

    #[test]
    fn microbatches_follow_the_cache_where_kernels_multiply_tiles() {
        let rows = |isa, l2_bytes| Blocking::new(isa, l2_bytes).microbatch(Dtype::Bf16);
        let cases = [(512 << 10, 128), (1 << 20, 128), (2 << 20, 256), (16 << 20, 256)];
        for (l2_bytes, expected) in cases {
            assert_eq!(rows(Isa::AmxBf16, l2_bytes), MicrobatchRows::of_all(expected));
            assert_eq!(rows(Isa::Avx512Bf16, l2_bytes), MicrobatchRows::of_all(256));
        }
        let blocking = Blocking::new(Isa::AmxBf16, 2 << 20);
        assert_eq!(blocking.microbatch(Dtype::F32), MicrobatchRows::of_all(256), "without tiles");
        let text = blocking.describe(Dtype::Bf16);
        assert!(text.ends_with("microbatches of 256 rows in training, 256 in forward passes"), "{text}");
    }
}
