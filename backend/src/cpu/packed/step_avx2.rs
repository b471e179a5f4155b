//! Steps dequantized with AVX2, eight columns at a time.
//!
//! A byte of quants becomes a part of the fraction of floats between 1 and 2, which are multiplied and offset by the factors of
//! their columns: that takes no conversions. The offset also takes the bias of the quants. Both products are exact where the
//! offset has at most 24 bits, but a zero is positive then even if the scale is negative: [`EXACT`](pair) elements have the sign.

use std::arch::x86_64::*;

use super::elements::NR;
use super::step_layout::{BITS, HALF, SCALES, by_format, high_at, prefetch_ahead, quants_at};
use crate::blocks::{BLOCK, BlockFormat};

/// Columns of a vector.
const LANES: usize = 8;
/// Vectors of the columns of a panel.
pub(in crate::cpu) const VECTORS: usize = NR / LANES;
/// The bits of 1.
const ONE: i32 = 0x3f80_0000;
/// Positions of the lowest bit of the quants in a float: of a low nibble or a byte, and of a high nibble.
const PLACES: [i32; 2] = [8, 12];

/// The value of the lowest bit of a quant at a place, in floats between 1 and 2.
const fn unit(place: usize) -> f32 {
    // 2 to the power of the place minus 23, which is the number of bits of a fraction.
    f32::from_bits(((127 + PLACES[place] - 23) as u32) << 23)
}

/// Shuffles that place eight bytes, the lower or the upper ones of sixteen in each half of a vector.
static CONTROLS: [[i8; 32]; 2] = [control(0), control(LANES)];

/// A shuffle that places bytes from `first` on as the second bytes of lanes, and zeros elsewhere.
const fn control(first: usize) -> [i8; 32] {
    let mut bytes = [i8::MIN; 32];
    let mut lane = 0;
    while lane < LANES {
        bytes[4 * lane + 1] = (first + lane) as i8;
        lane += 1;
    }
    bytes
}

/// Factors of the columns of a step.
pub(in crate::cpu) struct StepFactors {
    /// Scales over the [`unit`] of the place, by half of the step, place and vector.
    scales: [[[__m256; VECTORS]; 2]; 2],
    /// Offsets that take one and the bias, for elements that are not exact.
    offsets: [[__m256; VECTORS]; 2],
    /// Minimums, which are added.
    minimums: [__m256; VECTORS],
}

/// Reads the factors of a step.
///
/// # Safety
/// The processor has AVX2, FMA and F16C; `numbers` and `own` have the bytes of a step.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::cpu) unsafe fn factors<const FORMAT: usize>(numbers: *const u8, own: *const u8) -> StepFactors {
    let format = const { BlockFormat::ALL[FORMAT] };
    let zero = _mm256_setzero_ps();
    let mut found =
        StepFactors { scales: [[[zero; VECTORS]; 2]; 2], offsets: [[zero; VECTORS]; 2], minimums: [zero; VECTORS] };
    for v in 0..VECTORS {
        // SAFETY: a step has numbers and factors of all columns.
        unsafe {
            let number = |at: usize| _mm256_cvtph_ps(_mm_loadu_si128(numbers.add(at + 2 * LANES * v).cast()));
            let factor = |at: usize| {
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(own.add(at * NR + LANES * v).cast())))
            };
            let whole = number(0);
            let mut scales = [whole; 2];
            if format.has_minimum() {
                found.minimums[v] = number(SCALES);
            }
            if format.has_factors() {
                scales = [_mm256_mul_ps(whole, factor(0)); 2];
                if format.has_factors_of_halves() {
                    scales[1] = _mm256_mul_ps(whole, factor(1));
                } else {
                    let minimum = _mm256_mul_ps(found.minimums[v], factor(1));
                    found.minimums[v] = _mm256_xor_ps(minimum, _mm256_set1_ps(-0.0));
                }
            }
            for place in 0..2 {
                for (half, scale) in scales.into_iter().enumerate() {
                    found.scales[half][place][v] = _mm256_mul_ps(scale, _mm256_set1_ps(1.0 / unit(place)));
                }
                found.offsets[place][v] =
                    _mm256_mul_ps(found.scales[0][place][v], _mm256_set1_ps(-one_and_bias::<FORMAT>(place)));
            }
        }
    }
    found
}

/// The float that stands for a quant of zero.
#[inline]
fn one_and_bias<const FORMAT: usize>(place: usize) -> f32 {
    let format = const { BlockFormat::ALL[FORMAT] };
    // The sign of a byte is flipped, so that it is a quant with a bias.
    let bias = if matches!(format, BlockFormat::Q8_0) { 128 } else { format.bias() };
    1.0 + f32::from(bias) * unit(place)
}

/// Eight columns of a pair of positions: the elements of the even position and those of the odd one. If not `EXACT`, elements are
/// rounded to bf16, and a zero may have the other sign; scales are finite.
///
/// # Safety
/// As [`factors`], which `of` are those of the step; `pair` and `v` are in bounds.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::cpu) unsafe fn pair<const FORMAT: usize, const EXACT: bool>(
    own: *const u8,
    of: &StepFactors,
    pair: usize,
    v: usize,
) -> [__m256; 2] {
    let format = const { BlockFormat::ALL[FORMAT] };
    // Bytes of eight columns, each as the second byte of a lane.
    let place = |row: usize| {
        // SAFETY: rows of bytes lie in the step; a control has 32 bytes.
        unsafe {
            let control = _mm256_loadu_si256(CONTROLS[v % 2].as_ptr().cast());
            let bytes = _mm_loadu_si128(own.add(quants_at(format) + row * NR + v / 2 * 2 * LANES).cast());
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), control)
        }
    };
    // Bits beyond the fourth of a position, above the quants at a place.
    let above = |quants: __m256i, position: usize, place: usize| {
        let mut all = quants;
        for bit in 0..format.high_bits() {
            let at = high_at(format) + bit * BITS + (2 * pair + position) * size_of::<u32>();
            // SAFETY: a step has these bits of all positions.
            let bits = unsafe { _mm256_set1_epi32(own.add(at).cast::<i32>().read_unaligned()) };
            let first = _mm256_set1_epi32(1 << (LANES * v));
            let columns = _mm256_sllv_epi32(first, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let is_set = _mm256_cmpeq_epi32(_mm256_and_si256(bits, columns), columns);
            let value = _mm256_set1_epi32(1 << (PLACES[place] + 4 + bit as i32));
            all = _mm256_or_si256(all, _mm256_and_si256(is_set, value));
        }
        all
    };
    let half = if format.has_factors_of_halves() { 2 * pair / HALF } else { 0 };
    let element = |quants: __m256i, place: usize| {
        let (x, scales) = (_mm256_castsi256_ps(quants), of.scales[half][place][v]);
        // The offset of a scale with a factor and a bias has too many bits.
        let product = if EXACT || format.has_factors_of_halves() {
            _mm256_mul_ps(_mm256_sub_ps(x, _mm256_set1_ps(one_and_bias::<FORMAT>(place))), scales)
        } else {
            _mm256_fmadd_ps(x, scales, of.offsets[place][v])
        };
        let element = if format.has_minimum() { _mm256_add_ps(product, of.minimums[v]) } else { product };
        if EXACT { element } else { round(element) }
    };
    if matches!(format, BlockFormat::Q8_0) {
        // One, and the other sign.
        let flipped = |row: usize| _mm256_xor_si256(place(row), _mm256_set1_epi32(ONE | 0x8000));
        return [element(flipped(2 * pair), 0), element(flipped(2 * pair + 1), 0)];
    }
    let both = _mm256_or_si256(place(pair), _mm256_set1_epi32(ONE));
    let low = _mm256_and_si256(both, _mm256_set1_epi32(ONE | 0x0f00));
    let high = _mm256_and_si256(both, _mm256_set1_epi32(ONE | 0xf000));
    [element(above(low, 0, 0), 0), element(above(high, 1, 1), 1)]
}

/// Rounds to the nearest bf16, ties to even: the parts of `x · 2¹⁶` that `x · (2¹⁶ - 1)` loses when it is rounded to 24 bits are
/// those beyond eight bits of `x` (T. J. Dekker 1971, "A floating-point technique for extending the available precision"). The
/// difference keeps the last bit of a tie even, because `x · 2¹⁶` is even there, and a carry into the next power of two would take
/// a sum. Zeros become positive; `x · 2¹⁶` is finite.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn round(x: __m256) -> __m256 {
    let most = _mm256_mul_ps(x, _mm256_set1_ps(65_535.0));
    _mm256_fmsub_ps(x, _mm256_set1_ps(65_536.0), most)
}

/// Writes the elements of a step, position by position.
///
/// # Safety
/// As [`factors`]; `out` has room for the elements.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn step_values_avx2(format: BlockFormat, numbers: *const u8, own: *const u8, out: *mut f32) {
    // SAFETY: as the caller ensures.
    unsafe { by_format!(format, write_values(numbers, own, out)) }
}

/// [`step_values_avx2`] of one format.
///
/// # Safety
/// As [`step_values_avx2`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn write_values<const FORMAT: usize>(numbers: *const u8, own: *const u8, out: *mut f32) {
    prefetch_ahead::<FORMAT>(own);
    // SAFETY: as the caller ensures.
    unsafe {
        let of = factors::<FORMAT>(numbers, own);
        for i in 0..BLOCK / 2 {
            for v in 0..VECTORS {
                let [even, odd] = pair::<FORMAT, true>(own, &of, i, v);
                let at = out.add(2 * i * NR + LANES * v);
                _mm256_storeu_ps(at, even);
                _mm256_storeu_ps(at.add(NR), odd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// Rounds all.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn rounded(x: &[f32; LANES]) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: eight elements are read and written.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), round(_mm256_loadu_ps(x.as_ptr()))) };
        out
    }

    #[test]
    fn rounding_is_that_of_bf16() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        // All fractions near ties and powers of two, and others, of several exponents and both signs.
        let near = |at: u32| (at.saturating_sub(300)..=at + 300).map(|x| x & 0x7f_ffff);
        let ties = (0..128u32).flat_map(|high| near(high << 16).chain(near(high << 16 | 0x8000)));
        let fractions: Vec<u32> = ties.chain((0..1 << 23).step_by(97)).collect();
        for exponent in [103u32, 110, 127, 150] {
            for eight in fractions.chunks(LANES) {
                let mut x = [1.0; LANES];
                for (i, (x, fraction)) in x.iter_mut().zip(eight).enumerate() {
                    *x = f32::from_bits(exponent << 23 | fraction | (i as u32 % 2) << 31);
                }
                // SAFETY: the processor has the instructions.
                let found = unsafe { rounded(&x) };
                for (x, found) in x.iter().zip(found) {
                    assert_eq!(found.to_bits(), bf16::from_f32(*x).to_f32().to_bits(), "{x}");
                }
            }
        }
    }
}
