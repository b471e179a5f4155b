//! Sparse attention whose positions an indexer chooses (DeepSeek-AI 2025, arXiv:2512.02556): heads of its own score all earlier
//! positions, and attention sees those with the largest scores. No gradient flows through scores or choice.

use std::cmp::Ordering;

use crate::tensors::Tensors;
use crate::types::{KV_BLOCK, Span};

/// Extents of the indexers' keys in KV blocks, which are f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexKeys {
    /// Number of the model's blocks that have an indexer.
    pub layers: usize,
    /// Number of elements of a key.
    pub width: usize,
}

impl IndexKeys {
    /// The extents in models without indexers.
    pub const NONE: Self = Self { layers: 0, width: 0 };

    /// Returns the bytes of the keys in a KV block.
    pub fn block_bytes(&self) -> usize {
        self.layers * self.width * KV_BLOCK * size_of::<f32>()
    }
}

/// How the heads of an indexer are rotated: their first elements, as many as the rotary table has angles for.
pub struct IndexRotation<'a, B: Tensors> {
    /// Number of elements of a head.
    pub width: usize,
    /// Whether rotated pairs are neighbours; otherwise, element `i` pairs with the one half of the rotated elements
    /// behind it.
    pub interleaved: bool,
    /// Rotary table of attention.
    pub rope: &'a B::Rope,
    /// Position of every row of the batch.
    pub positions: &'a [u32],
}

/// A choice of positions for the rows of a pass.
#[derive(Clone, Copy)]
pub struct IndexCall<'a> {
    /// Index of the indexer among those of the model.
    pub layer: usize,
    /// Number of its heads.
    pub heads: usize,
    /// Number of positions that a row attends to.
    pub count: usize,
    /// The sequences, whose rows are in order and do not overlap.
    pub spans: &'a [Span],
}

impl IndexCall<'_> {
    /// Returns whether a row is preceded by more positions than it may attend to.
    pub fn is_sparse(&self) -> bool {
        self.spans.iter().any(|span| span.start + span.rows.len() > self.count)
    }
}

/// Positions that the rows of a pass attend to, as one bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Words of row `i` are `offsets[i]..offsets[i + 1]`, one for each block of [`KV_BLOCK`] positions; a row without words sees
    /// all positions up to its own.
    offsets: Vec<usize>,
    words: Vec<u32>,
}

// A word has a bit for each position of a block.
const _: () = assert!(KV_BLOCK == u32::BITS as usize);

impl Chosen {
    /// No choices yet for a batch of `rows` rows: words are zero in rows that do not see all positions.
    pub(crate) fn empty(rows: usize, call: &IndexCall<'_>) -> Self {
        let mut blocks = vec![0; rows];
        for span in call.spans {
            for (row, position) in span.rows.clone().zip(span.start..) {
                blocks[row] = if position < call.count { 0 } else { position / KV_BLOCK + 1 };
            }
        }
        let mut offsets = Vec::with_capacity(rows + 1);
        let mut end = 0;
        offsets.push(end);
        offsets.extend(blocks.into_iter().map(|blocks| {
            end += blocks;
            end
        }));
        Self { words: vec![0; end], offsets }
    }

    /// Words of every row, in order; none of a row that sees all positions.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [u32]> {
        let mut rest = &mut self.words[..];
        self.offsets.windows(2).map(move |ends| {
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(ends[1] - ends[0]);
            rest = behind;
            own
        })
    }

    /// Returns the positions of a block that a row attends to: bit `i` is that of position `block · KV_BLOCK + i`. If
    /// the row attends to all earlier positions, bits of later ones may also be set.
    pub fn of(&self, row: usize, block: usize) -> u32 {
        match &self.words[self.offsets[row]..self.offsets[row + 1]] {
            [] => u32::MAX,
            words => words.get(block).copied().unwrap_or(0),
        }
    }
}

/// Order of positions by score, the best first: of equal scores the lower position; NaN counts as -inf.
fn by_score(scores: &[f32], a: u32, b: u32) -> Ordering {
    let score = |position: u32| Some(scores[position as usize]).filter(|x| !x.is_nan()).unwrap_or(f32::NEG_INFINITY);
    // Scores are sums that begin at +0, so there is no -0.
    score(b).total_cmp(&score(a)).then(a.cmp(&b))
}

/// Sets the bits of the `count` positions with the largest scores, of equal ones the first.
pub(crate) fn choose_best(scores: &[f32], count: usize, words: &mut [u32]) {
    let mut positions: Vec<u32> = (0..scores.len() as u32).collect();
    if count < positions.len() {
        positions.select_nth_unstable_by(count, |a, b| by_score(scores, *a, *b));
        positions.truncate(count);
    }
    for position in positions {
        words[position as usize / KV_BLOCK] |= 1 << (position as usize % KV_BLOCK);
    }
}

/// Ops of indexers on a backend `B`.
pub trait IndexerOps<B: Tensors> {
    /// Whether the backend has these ops; otherwise, contexts end at the number of positions that indexers choose.
    const HAS_INDEXERS: bool;

    /// Rotates the heads in every row of `x`, in f32. A rotated pair's first elements come before the second ones.
    fn rotate_index(backend: &B, rotation: &IndexRotation<'_, B>, x: &B::Rows) -> B::Rows;

    /// Writes rotated keys, `[rows, width]`, into the blocks of their sequences, as f32; positions below [`Span::held`] are skipped.
    fn write_index(backend: &B, pool: &mut B::KvPool, layer: usize, spans: &[Span], keys: &B::Rows);

    /// Chooses the positions of every row from rotated queries, `[rows, heads · width]`, weights of heads, `[rows, heads]`, and the
    /// keys in `pool`. The score of position `s` is the sum over heads, in order and from +0 on, of the product of
    /// `weight · heads^-½` and `relu(query · key · width^-½)`, all in f32; the order of a product's sum depends only on the width.
    fn choose(backend: &B, call: IndexCall<'_>, pool: &B::KvPool, queries: &B::Rows, weights: &B::Rows) -> Chosen;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(words: &[u32]) -> Vec<usize> {
        (0..words.len() * KV_BLOCK).filter(|at| words[at / KV_BLOCK] >> (at % KV_BLOCK) & 1 == 1).collect()
    }

    #[test]
    fn ties_go_to_the_lower_position_and_nan_is_the_worst() {
        let of = |scores: &[f32], count: usize| {
            let mut words = vec![0; scores.len().div_ceil(KV_BLOCK)];
            choose_best(scores, count, &mut words);
            positions(&words)
        };
        assert_eq!(of(&[1.0, 3.0, 2.0, 3.0, 3.0], 2), [1, 3]);
        assert_eq!(of(&[0.0; 40], 3), [0, 1, 2]);
        assert_eq!(of(&[f32::NAN, -1.0, f32::NAN, -2.0], 3), [0, 1, 3]);
        assert_eq!(of(&[-1.0, -3.0, f32::INFINITY], 1), [2]);
        assert_eq!(of(&[0.5, 0.25], 2), [0, 1]);
    }

    #[test]
    fn rows_have_words_from_the_first_position_on_that_does_not_see_all() {
        let span = |rows, start| Span { rows, start, blocks: Vec::new(), held: 0, state: None };
        let spans = [span(0..2, 30), span(3..5, 2), span(5..6, 64)];
        let call = IndexCall { layer: 0, heads: 1, count: 31, spans: &spans };
        assert!(call.is_sparse());
        assert!(!IndexCall { count: 65, ..call }.is_sparse());
        let mut chosen = Chosen::empty(6, &call);
        let lens: Vec<usize> = chosen.rows_mut().map(|words| words.len()).collect();
        assert_eq!(lens, [0, 1, 0, 0, 0, 3]);
        for (row, words) in chosen.rows_mut().enumerate() {
            words.iter_mut().for_each(|word| *word = row as u32);
        }
        assert_eq!(
            [(0, 7), (1, 0), (1, 1), (4, 0), (5, 2)].map(|(row, block)| chosen.of(row, block)),
            [u32::MAX, 1, 0, u32::MAX, 5]
        );
    }
}
