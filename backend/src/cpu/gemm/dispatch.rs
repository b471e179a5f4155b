//! Picks the kernel of a tile by instruction set, height and form of the weights.

use super::super::Isa;
#[cfg(target_arch = "x86_64")]
use super::super::packed::NR;
use super::strip::RhsStrip;
use super::tiles::{LhsF32, MR_F32, STRIP, TileOut, by_height, f32_portable};
#[cfg(target_arch = "x86_64")]
use super::tiles::{bf16_avx2, f32_avx2_packed};

/// A tile of f32 inputs.
///
/// # Safety
/// `height <= MR_F32` rows of the packed tile, `width` columns and `steps` positions are in bounds.
#[inline]
pub(super) unsafe fn f32_tile(
    isa: Isa,
    height: usize,
    width: usize,
    steps: usize,
    a: *const f32,
    strip: RhsStrip,
    out: TileOut,
) {
    // SAFETY: bounds as the caller ensures; AVX2 kernels run only where `isa` has them.
    unsafe {
        match (isa, strip) {
            #[cfg(target_arch = "x86_64")]
            (isa, RhsStrip::Words(b)) if isa.has_avx2() && width == NR => {
                macro_rules! wide { ($($m:literal)*) => { match height { $($m => bf16_avx2::<$m, 4>(steps / 2, a, b, out),)* _ => {} } } }
                wide!(1 2 3);
            }
            #[cfg(target_arch = "x86_64")]
            (isa, RhsStrip::Words(b)) if isa.has_avx2() => {
                macro_rules! half { ($($m:literal)*) => { match height { $($m => bf16_avx2::<$m, 2>(steps / 2, a, b, out),)* _ => {} } } }
                half!(1 2 3 4 5 6);
            }
            #[cfg(target_arch = "x86_64")]
            (isa, RhsStrip::F32(b)) if isa.has_avx2() => {
                let lhs = LhsF32 { at: a, row_stride: 1, k_stride: MR_F32 };
                by_height!(height, f32_avx2_packed(steps, lhs, b, out): 1 2 3 4 5 6);
            }
            (_, RhsStrip::F32(b)) => {
                let lhs = LhsF32 { at: a, row_stride: 1, k_stride: MR_F32 };
                f32_portable(height, STRIP, steps, lhs, b, out);
            }
            // Without AVX2, strips are always widened.
            (_, RhsStrip::Words(_)) => {}
        }
    }
}
