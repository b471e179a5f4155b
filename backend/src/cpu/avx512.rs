//! AVX-512 pieces that kernels share: transposes, and rounding to bf16.

use std::arch::x86_64::*;

/// Transposes 16 rows of 16 words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose(r: [__m512i; 16]) -> [__m512i; 16] {
    let (mut t, mut u) = ([_mm512_setzero_si512(); 16], [_mm512_setzero_si512(); 16]);
    for i in (0..16).step_by(2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    // Lane L of u[i + c] holds column 4 L + c of rows i to i + 3.
    for i in (0..16).step_by(4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for c in 0..4 {
        // Lanes 0 and 2, then 1 and 3.
        t[c] = _mm512_shuffle_i32x4::<0x88>(u[c], u[4 + c]);
        t[4 + c] = _mm512_shuffle_i32x4::<0xdd>(u[c], u[4 + c]);
        t[8 + c] = _mm512_shuffle_i32x4::<0x88>(u[8 + c], u[12 + c]);
        t[12 + c] = _mm512_shuffle_i32x4::<0xdd>(u[8 + c], u[12 + c]);
    }
    for c in 0..4 {
        u[c] = _mm512_shuffle_i32x4::<0x88>(t[c], t[8 + c]);
        u[4 + c] = _mm512_shuffle_i32x4::<0x88>(t[4 + c], t[12 + c]);
        u[8 + c] = _mm512_shuffle_i32x4::<0xdd>(t[c], t[8 + c]);
        u[12 + c] = _mm512_shuffle_i32x4::<0xdd>(t[4 + c], t[12 + c]);
    }
    u
}

/// Transposes 16 vectors of floats; see [`transpose`].
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose_floats(r: [__m512; 16]) -> [__m512; 16] {
    // SAFETY: vectors of floats and of words are 64 bytes each, of which any value is valid.
    unsafe {
        std::mem::transmute::<[__m512i; 16], [__m512; 16]>(transpose(
            std::mem::transmute::<[__m512; 16], [__m512i; 16]>(r),
        ))
    }
}

/// `low` and `high` rounded to bf16, one after the other. Denormal numbers become zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(crate) fn round(low: __m512, high: __m512) -> __m512i {
    // SAFETY: both types are 64 bytes, of which any value is valid.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
}

/// The indices that interleave two halves of 16 bf16: word `i` gets elements `i` and `16 + i`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn halves() -> __m512i {
    let word = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_or_si512(word, _mm512_slli_epi32::<16>(_mm512_add_epi32(word, _mm512_set1_epi32(16))))
}

/// The words of two rows of 32 bf16: of columns 0 to 15, and of 16 to 31; the first row is in the low halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn interleave(first: __m512i, second: __m512i) -> [__m512i; 2] {
    // Element i of the second row has index 32 + i.
    let low = _mm512_add_epi16(halves(), _mm512_set1_epi32(16 << 16));
    let high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    [_mm512_permutex2var_epi16(first, low, second), _mm512_permutex2var_epi16(first, high, second)]
}
