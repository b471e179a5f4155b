//! Products of bf16 tiles, the micro-kernels that GEMM, attention and gradients of weights of the classes with bf16 products
//! are made of. AMX has instructions for them ([`amx`](super::amx)), AVX-512 BF16 computes the same from dot products of
//! pairs ([`avx512`]): operands have one layout ([`tile_layout`](super::tile_layout)), so that all but these loops is the same
//! code.

mod avx512;

use super::Isa;
use super::amx;
use super::tile_layout::{Segment, TILE, TileLhs, TileRhs};

/// The unit that multiplies tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileUnit {
    /// Tile registers of AMX.
    Amx,
    /// Dot products of pairs of bf16 in vector registers.
    Avx512,
}

impl TileUnit {
    /// The unit of a kernel class; `None` if the class has no products of bf16.
    pub(super) fn of(isa: Isa) -> Option<Self> {
        match isa {
            Isa::AmxBf16 => Some(Self::Amx),
            Isa::Avx512Bf16 => Some(Self::Avx512),
            Isa::Avx2 | Isa::Portable => None,
        }
    }

    /// Prepares this thread for products.
    ///
    /// # Safety
    /// The processor has the unit.
    #[inline]
    pub(super) unsafe fn configure(self) {
        if self == Self::Amx {
            // SAFETY: as the caller ensures.
            unsafe { amx::configure() }
        }
    }

    /// `c[16 R, 16 C] (+)= a · b` over `steps` steps along `k`; rows of `c` are `stride` elements apart.
    ///
    /// # Safety
    /// The processor has the unit, and this thread is [configured](Self::configure); `R` row tiles and `C` column tiles (1 or
    /// 2 of each) of `steps` steps are in bounds, and nobody else accesses `c`.
    #[inline(always)]
    pub(super) unsafe fn multiply<const R: usize, const C: usize>(
        self,
        steps: usize,
        a: TileLhs,
        b: TileRhs,
        c: *mut f32,
        stride: usize,
        add: bool,
    ) {
        // SAFETY: as the caller ensures.
        unsafe {
            match self {
                Self::Amx => amx::multiply::<R, C>(steps, a, b, c, stride, add),
                Self::Avx512 => avx512::multiply::<R, C>(steps, a, b, c, stride, add),
            }
        }
    }

    /// `c[16 R, 32] (+)= Σ a · b` over segments in order; rows of `c` are `stride` elements apart, and those from row `rows`
    /// on may be left as they are. With `STREAM`, the right side comes from memory and is prefetched.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply); there is a segment.
    #[inline(always)]
    pub(super) unsafe fn multiply_segments<const R: usize, const STREAM: bool>(
        self,
        rows: usize,
        segments: &[Segment],
        c: *mut f32,
        stride: usize,
        add: bool,
    ) {
        // SAFETY: as the caller ensures.
        unsafe {
            match self {
                Self::Amx => amx::multiply_segments::<R, STREAM>(segments, c, stride, add),
                Self::Avx512 => avx512::multiply_segments::<STREAM>(rows.min(TILE * R), segments, c, stride, add),
            }
        }
    }

    /// Computes `c[32, 16 C] (+)= Σ a · b` over one or more blocks of 32 positions anywhere in memory. Each block has
    /// 32 rows of `a` at its address in `blocks` plus `offset` bytes, one after the other, and 16 rows of 16 C words of
    /// `b`, blocks one after the other. Rows of `c` have 16 C elements.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply).
    #[inline(always)]
    pub(super) unsafe fn multiply_blocks<const C: usize>(
        self,
        blocks: &[*const u8],
        offset: usize,
        b: *const u32,
        c: *mut f32,
        add: bool,
    ) {
        // SAFETY: as the caller ensures.
        unsafe {
            match self {
                Self::Amx => amx::multiply_blocks::<C>(blocks, offset, b, c, add),
                Self::Avx512 => avx512::multiply_blocks::<C>(blocks, offset, b, c, add),
            }
        }
    }
}

#[cfg(test)]
mod tests;
