//! Probabilities and the gradients of scores, for 32 queries and a block of keys.

use std::arch::x86_64::*;

use super::vector::{exp2, interleave, load_floats, round, store};
use super::{BLOCK, QUERIES, Sight};

/// Queries of a tile.
pub(super) struct Queries {
    pub(super) sight: [Sight; 2],
    /// Log-sum-exp of the scores, to base 2.
    pub(super) lse: [__m512; 2],
    /// Dot product of the output and its gradient.
    pub(super) delta: [__m512; 2],
}

/// Destinations of a block's bf16 results: rows of queries by key, `stride` words from one to the next, as the left
/// side of sums over queries; and words of two keys, `[16][32]`, as the right side of sums over keys.
pub(super) struct Gradients<'a> {
    pub(super) p: &'a mut [u32],
    pub(super) ds: &'a mut [u32],
    pub(super) stride: usize,
    pub(super) ds_words: &'a mut [u32],
}

/// Computes probabilities and the gradients of scores. `s[keys][queries]` are products of keys and queries, which
/// `scale` (with the logarithm's base) turns into scores; `dp` are the gradients of probabilities. The first key is at
/// position `first`; with `whole`, queries see all keys.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512bf16")]
pub(super) fn gradients(
    s: &[f32],
    dp: &[f32],
    scale: f32,
    queries: &Queries,
    first: usize,
    whole: bool,
    to: &mut Gradients<'_>,
) {
    let scale = _mm512_set1_ps(scale);
    for pair in 0..BLOCK / 2 {
        let mut rows = [_mm512_setzero_si512(); 2];
        for (i, row) in rows.iter_mut().enumerate() {
            let key = 2 * pair + i;
            let (mut p, mut ds) = ([_mm512_setzero_ps(); 2], [_mm512_setzero_ps(); 2]);
            for c in 0..2 {
                let at = key * QUERIES + 16 * c;
                p[c] = exp2(_mm512_fmsub_ps(load_floats(&s[at..]), scale, queries.lse[c]));
                let over = _mm512_sub_ps(load_floats(&dp[at..]), queries.delta[c]);
                ds[c] = _mm512_mul_ps(p[c], over);
                if !whole {
                    // What is not seen may be anything.
                    let seen = queries.sight[c].of(first + key);
                    (p[c], ds[c]) = (_mm512_maskz_mov_ps(seen, p[c]), _mm512_maskz_mov_ps(seen, ds[c]));
                }
            }
            *row = round(ds[0], ds[1]);
            store(&mut to.p[key * to.stride..], round(p[0], p[1]));
            store(&mut to.ds[key * to.stride..], *row);
        }
        for (c, words) in interleave(rows[0], rows[1]).into_iter().enumerate() {
            store(&mut to.ds_words[pair * QUERIES + 16 * c..], words);
        }
    }
}
