//! The running softmax of a tile of queries, one in each lane.

use std::arch::x86_64::*;

use super::vector::{exp2, halves, load_floats, round, store, store_floats, widen};
use super::{BLOCK, Sight};

/// Running softmax of a tile's queries over the keys so far. Logarithms are to base 2.
pub(super) struct Softmax<const C: usize> {
    /// Largest score so far.
    pub(super) top: [__m512; C],
    /// Sum of probabilities, relative to `top`.
    pub(super) sum: [__m512; C],
    /// Sum of the rounded probabilities, by which the output is divided: so its weights add up to one.
    pub(super) rounded_sum: [__m512; C],
}

/// Keys of a tile.
pub(super) struct Keys {
    /// Position of the first one.
    pub(super) first: usize,
    /// Number of key blocks.
    pub(super) blocks: usize,
    /// Positions that every query sees.
    pub(super) seen_by_all: std::ops::Range<usize>,
}

impl Keys {
    /// Position of a block's first key, and whether every query sees the block.
    fn block(&self, i: usize) -> (usize, bool) {
        let first = self.first + i * BLOCK;
        (first, first >= self.seen_by_all.start && first + BLOCK <= self.seen_by_all.end)
    }
}

impl<const C: usize> Softmax<C> {
    /// The state before the first key.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new() -> Self {
        let zero = [_mm512_setzero_ps(); C];
        Self { top: [_mm512_set1_ps(f32::NEG_INFINITY); C], sum: zero, rounded_sum: zero }
    }

    /// Adds keys: from products `s`, `[keys][16 C]`, which `scale` (with the logarithm's base) makes scores, to probabilities
    /// `p`, `[keys / 2][16 C]` words of two keys. Returns by what sums so far have to be multiplied.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512bf16")]
    pub(super) fn add(&mut self, keys: &Keys, s: &[f32], scale: f32, sight: &[Sight; C], p: &mut [u32]) -> [__m512; C] {
        let old = self.top;
        self.raise_top(keys, s, scale, sight);
        let none = _mm512_set1_ps(f32::NEG_INFINITY);
        // A query that has seen nothing yet has probabilities 0, not NaN.
        let top = self.top.map(|top| _mm512_maskz_mov_ps(_mm512_cmpneq_ps_mask(top, none), top));
        let rescale: [__m512; C] = std::array::from_fn(|c| exp2(_mm512_sub_ps(old[c], top[c])));
        let scale = _mm512_set1_ps(scale);
        let order = halves();
        let mut sums = [[_mm512_setzero_ps(); 2]; C];
        let mut rounded = [[_mm512_setzero_ps(); 2]; C];
        for block in 0..keys.blocks {
            let (first, whole) = keys.block(block);
            for pair in 0..BLOCK / 2 {
                let row = block * BLOCK + 2 * pair;
                for c in 0..C {
                    let probability = |i: usize| {
                        let s = load_floats(&s[((row + i) * C + c) * 16..]);
                        let p = exp2(_mm512_fmsub_ps(s, scale, top[c]));
                        if whole { p } else { _mm512_maskz_mov_ps(sight[c].of(first + 2 * pair + i), p) }
                    };
                    let both = [probability(0), probability(1)];
                    let words = _mm512_permutexvar_epi16(order, round(both[0], both[1]));
                    store(&mut p[(row / 2 * C + c) * 16..], words);
                    for (i, (exact, bf16)) in both.into_iter().zip(widen(words)).enumerate() {
                        sums[c][i] = _mm512_add_ps(sums[c][i], exact);
                        rounded[c][i] = _mm512_add_ps(rounded[c][i], bf16);
                    }
                }
            }
        }
        for c in 0..C {
            let add = |old, [even, odd]: [__m512; 2]| _mm512_fmadd_ps(old, rescale[c], _mm512_add_ps(even, odd));
            self.sum[c] = add(self.sum[c], sums[c]);
            self.rounded_sum[c] = add(self.rounded_sum[c], rounded[c]);
        }
        rescale
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn raise_top(&mut self, keys: &Keys, s: &[f32], scale: f32, sight: &[Sight; C]) {
        let none = _mm512_set1_ps(f32::NEG_INFINITY);
        let scale = _mm512_set1_ps(scale);
        let mut tops = [[none; 2]; C];
        for block in 0..keys.blocks {
            let (first, whole) = keys.block(block);
            for key in 0..BLOCK {
                for c in 0..C {
                    let row = block * BLOCK + key;
                    let score = _mm512_mul_ps(load_floats(&s[(row * C + c) * 16..]), scale);
                    let seen = if whole { score } else { _mm512_mask_mov_ps(none, sight[c].of(first + key), score) };
                    // A score that is not a number leaves the maximum, and its probability is none either.
                    tops[c][key % 2] = _mm512_max_ps(seen, tops[c][key % 2]);
                }
            }
        }
        for (top, [even, odd]) in self.top.iter_mut().zip(tops) {
            *top = _mm512_max_ps(_mm512_max_ps(even, odd), *top);
        }
    }
}

/// Multiplies sums, `[rows][16 C]`, unless all factors are one.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn rescale<const C: usize>(sums: &mut [f32], factors: &[__m512; C]) {
    let one = _mm512_set1_ps(1.0);
    if factors.iter().all(|factor| _mm512_cmpneq_ps_mask(*factor, one) == 0) {
        return;
    }
    for row in sums.chunks_exact_mut(16 * C) {
        for (sums, factor) in row.chunks_exact_mut(16).zip(factors) {
            let product = _mm512_mul_ps(load_floats(sums), *factor);
            store_floats(sums, product);
        }
    }
}
