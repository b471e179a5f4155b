//! Blocks of [`NR`] rows of a matrix side by side: [`BLOCK`] positions of `k`, a step. Their bits are those of the file in another
//! order, so that all rows of the step are dequantized together. First, for all steps of a super-block, the scales of all rows,
//! and in formats with minimums these, as f16. Then for each step:
//! - in super-blocks the factors of all rows, a byte each: of the scale, or of the scale in each half of the step; of the minimum;
//! - bits beyond the fourth, first the fifth bits, then the sixth: for each position a bit of each row;
//! - nibbles: for each pair of positions a byte of each row, the lower position in the low half; or for each position a byte of
//!   each row.

use half::f16;

use super::elements::NR;
use crate::Dtype;
use crate::blocks::{BLOCK, BlockFormat};

/// Elements of a step.
pub(super) const STEP: usize = BLOCK * NR;
/// Words of a step in bf16.
pub(in crate::cpu) const STEP_WORDS: usize = STEP / 2;
/// Bytes of the scales of a step.
pub(super) const SCALES: usize = NR * size_of::<f16>();
/// Bytes of a bit of each element of a step.
pub(super) const BITS: usize = STEP / 8;
/// Positions of half a step.
pub(super) const HALF: usize = BLOCK / 2;
/// Steps of a super-block.
const SUPER: usize = BlockFormat::Q4K.blocks();
/// Bytes by which kernels prefetch steps, which they read in order.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 4 << 10;

/// Bytes of the scales and minimums of a step, or of the steps of a super-block.
#[inline(always)]
pub(super) const fn numbers_bytes(format: BlockFormat) -> usize {
    if format.has_minimum() { 2 * SCALES } else { SCALES }
}

/// First byte of the bits beyond the fourth, which follow the factors.
#[inline(always)]
pub(super) const fn high_at(format: BlockFormat) -> usize {
    if format.has_factors() { 2 * NR } else { 0 }
}

/// First byte of the quants.
#[inline(always)]
pub(super) const fn quants_at(format: BlockFormat) -> usize {
    high_at(format) + format.high_bits() * BITS
}

/// Bytes of a step beside its scales and minimums.
#[inline(always)]
pub(super) const fn own_bytes(format: BlockFormat) -> usize {
    quants_at(format) + if matches!(format, BlockFormat::Q8_0) { STEP } else { STEP / 2 }
}

/// The bytes of a step.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct StepBytes<'a> {
    /// Scales and minimums of all rows, as f16.
    pub numbers: &'a [u8],
    pub own: &'a [u8],
}

/// Bytes of the steps of a panel that are stored together: a step, or those of a super-block.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct StepLayout {
    /// Steps that are stored together: 1 or [`SUPER`].
    steps: usize,
    /// Bytes before the first step.
    pub(super) numbers: usize,
    /// Bytes of each step.
    pub(super) own: usize,
}

impl StepLayout {
    /// The layout of panels of a format, or of widened ones with elements of `dtype`.
    #[inline]
    pub(super) fn of(dtype: Dtype, format: Option<BlockFormat>) -> Self {
        match format {
            Some(format) => Self::of_format(format),
            None => Self { steps: 1, numbers: 0, own: STEP * dtype.bytes() },
        }
    }

    /// The layout of panels of a format.
    #[inline(always)]
    pub(in crate::cpu) const fn of_format(format: BlockFormat) -> Self {
        Self { steps: format.blocks(), numbers: numbers_bytes(format), own: own_bytes(format) }
    }

    /// Bytes of the steps together.
    #[inline(always)]
    pub(super) const fn bytes(self) -> usize {
        self.numbers + self.steps * self.own
    }

    /// Bytes of `steps` steps.
    pub(super) const fn bytes_of(self, steps: usize) -> usize {
        steps.div_ceil(self.steps) * self.bytes()
    }

    /// A step of a panel.
    #[inline(always)]
    pub(in crate::cpu) fn step(self, panel: &[u8], step: usize) -> StepBytes<'_> {
        let (together, within) = if self.steps == 1 { (step, 0) } else { (step / SUPER, step % SUPER) };
        let (numbers, steps) = panel[together * self.bytes()..][..self.bytes()].split_at(self.numbers);
        StepBytes { numbers, own: &steps[within * self.own..][..self.own] }
    }
}

/// Prefetches what is read after a step.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::cpu) fn prefetch_ahead<const FORMAT: usize>(own: *const u8) {
    for line in (0..own_bytes(const { BlockFormat::ALL[FORMAT] })).step_by(64) {
        // SAFETY: a prefetch reads nothing that the program sees, at any address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(own.wrapping_add(AHEAD + line).cast())
        };
    }
}

/// Calls `f::<FORMAT, …>(…)` with the index in [`BlockFormat::ALL`] of a format that is only known at run time.
#[cfg(target_arch = "x86_64")]
macro_rules! by_format {
    ($format:expr, $f:ident $arguments:tt) => {
        match $format {
            BlockFormat::Q4_0 => by_format!(@call $f, 0, $arguments),
            BlockFormat::Q4_1 => by_format!(@call $f, 1, $arguments),
            BlockFormat::Q5_0 => by_format!(@call $f, 2, $arguments),
            BlockFormat::Q5_1 => by_format!(@call $f, 3, $arguments),
            BlockFormat::Q8_0 => by_format!(@call $f, 4, $arguments),
            BlockFormat::Q4K => by_format!(@call $f, 5, $arguments),
            BlockFormat::Q5K => by_format!(@call $f, 6, $arguments),
            BlockFormat::Q6K => by_format!(@call $f, 7, $arguments),
        }
    };
    (@call $f:ident, $index:literal, ($($argument:expr),*)) => { $f::<$index>($($argument),*) };
}
#[cfg(target_arch = "x86_64")]
pub(in crate::cpu) use by_format;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn indexed<const FORMAT: usize>(format: BlockFormat) -> bool {
        BlockFormat::ALL[FORMAT] == format
    }

    #[test]
    fn formats_are_called_by_their_index() {
        for format in BlockFormat::ALL {
            assert!(by_format!(format, indexed(format)), "{format:?}");
        }
    }
}
