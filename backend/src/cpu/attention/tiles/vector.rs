//! AVX-512 pieces of attention on tiles: 2^x, and rows of heads rounded to bf16.

use std::arch::x86_64::*;

pub(super) use crate::cpu::avx512::{halves, interleave, round, transpose, transpose_floats};

/// Lanes of a vector.
pub(super) const LANES: usize = 16;

/// `2^t` to 2.5e-7 of it; 0 for -inf. Cut into floor and fraction; the polynomial of 2^fraction interpolates at Chebyshev
/// nodes and is 1 at 0.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn exp2(t: __m512) -> __m512 {
    const COEFFICIENTS: [f32; 5] = [9.199_387e-3, 5.565_705_5e-2, 0.240_207_2, 0.693_147_54, 1.0];
    // Rounding down, no fraction bits, no exceptions.
    let fraction = _mm512_reduce_ps::<0b1001>(t);
    let mut p = _mm512_set1_ps(1.788_368_8e-3);
    for c in COEFFICIENTS {
        p = _mm512_fmadd_ps(p, fraction, _mm512_set1_ps(c));
    }
    _mm512_scalef_ps(p, t)
}

/// The low, then the high elements of words, as floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn widen(words: __m512i) -> [__m512; 2] {
    let high = _mm512_and_si512(words, _mm512_set1_epi32(-1 << 16));
    [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)), _mm512_castsi512_ps(high)]
}

/// Rows of one head: `count` rows of `width` floats, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a> {
    data: &'a [f32],
    stride: usize,
    count: usize,
    width: usize,
}

impl<'a> HeadRows<'a> {
    /// Rows from element `at` of `data` on.
    pub(super) fn new(data: &'a [f32], at: usize, stride: usize, count: usize, width: usize) -> Self {
        let data = &data[at..];
        assert!(count == 0 || data.len() >= (count - 1) * stride + width);
        Self { data, stride, count, width }
    }

    /// Up to `count` rows from row `first` on.
    pub(super) fn part(&self, first: usize, count: usize) -> Self {
        let count = count.min(self.count.saturating_sub(first));
        let data = if count == 0 { &[] } else { &self.data[first * self.stride..] };
        Self { data, count, ..*self }
    }

    /// 32 elements of a row from column `d` on; those that are not there are zero.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn load(&self, row: usize, d: usize) -> [__m512; 2] {
        [self.lanes(row, d), self.lanes(row, d + LANES)]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lanes(&self, row: usize, d: usize) -> __m512 {
        if row >= self.count || d >= self.width {
            return _mm512_setzero_ps();
        }
        // SAFETY: the row exists, and the mask leaves out what is beyond its end.
        unsafe { _mm512_maskz_loadu_ps(mask(self.width - d), self.data.as_ptr().add(row * self.stride + d)) }
    }

    /// Prefetches the rows into the second-level cache.
    pub(super) fn prefetch(&self) {
        for row in 0..self.count {
            for d in (0..self.width).step_by(LANES) {
                // SAFETY: the element exists.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(self.data.as_ptr().add(row * self.stride + d).cast()) };
            }
        }
    }

    /// [`HeadRows::load`], rounded to bf16.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn rounded(&self, row: usize, d: usize) -> __m512i {
        let [low, high] = self.load(row, d);
        round(low, high)
    }
}

/// Prefetches `rows` rows of `width` floats that are going to be written, wherever that is.
pub(super) fn prefetch_to_write(first: *const f32, stride: usize, rows: usize, width: usize) {
    for row in 0..rows {
        for d in (0..width).step_by(LANES) {
            let at = first.wrapping_add(row * stride + d);
            // SAFETY: a hint, which neither reads nor writes, nor faults at any address; processors with AVX-512 have it.
            unsafe { std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags)) };
        }
    }
}

/// The first `count` lanes, at most all.
#[inline]
pub(super) fn mask(count: usize) -> __mmask16 {
    if count >= LANES { !0 } else { (1 << count) - 1 }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut [u32], words: __m512i) {
    let to = &mut to[..LANES];
    // SAFETY: 64 bytes, as the slice shows.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_floats(from: &[f32]) -> __m512 {
    let from = &from[..LANES];
    // SAFETY: 64 bytes, as the slice shows.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_floats(to: &mut [f32], x: __m512) {
    let to = &mut to[..LANES];
    // SAFETY: 64 bytes, as the slice shows.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x) }
}

/// Stores the first `count` of 16 floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_some(to: &mut [f32], count: usize, x: __m512) {
    let to = &mut to[..count.min(LANES)];
    // SAFETY: the mask leaves out what is beyond the slice's end.
    unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask(count), x) }
}
