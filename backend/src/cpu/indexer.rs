//! Indexers of sparse attention.

use super::gemm::{Extents, Strided, strided};
use super::kv::IndexPool;
use super::latent::rotate;
use super::parallel::{for_each, for_rows};
use super::rows::HostRows;
use super::vexp::multiversion;
use super::{Cpu, kv::KvPool};
use crate::{Chosen, IndexCall, IndexRotation, IndexerOps, KV_BLOCK as BLOCK, Rows, Span, choose_best};

multiversion! {
    /// Adds up the heads' parts of the scores of a block: from products `s[heads][BLOCK]`, multiplied by `scale`, and the heads'
    /// weights.
    fn add_heads(s: &[f32], weights: &[f32], scale: f32, scores: &mut [f32; BLOCK]) {
        for (s, weight) in s.as_chunks::<BLOCK>().0.iter().zip(weights) {
            for (score, s) in scores.iter_mut().zip(s) {
                let product = s * scale;
                *score += weight * if product > 0.0 { product } else { 0.0 };
            }
        }
    }
}

/// A row that does not see all positions before it.
struct SparseRow<'a> {
    row: usize,
    position: usize,
    span: &'a Span,
    /// The row's words in [`Chosen`].
    words: &'a mut [u32],
}

impl SparseRow<'_> {
    /// Scores of all positions up to the row's own.
    fn scores(&self, cpu: &Cpu, call: IndexCall<'_>, keys: &IndexPool, [queries, weights]: [&HostRows; 2]) -> Vec<f32> {
        let (heads, width) = (call.heads, keys.width());
        let (scale, by_head) = (1.0 / (width as f32).sqrt(), 1.0 / (heads as f32).sqrt());
        let weights: Vec<f32> = weights[self.row * heads..][..heads].iter().map(|weight| weight * by_head).collect();
        let queries = Strided { data: &queries[self.row * heads * width..], row_stride: width, col_stride: 1 };
        let mut products = vec![0.0; heads * BLOCK];
        let mut scores = vec![0.0; (self.position / BLOCK + 1) * BLOCK];
        for (scores, block) in scores.as_chunks_mut::<BLOCK>().0.iter_mut().zip(&self.span.blocks) {
            let (extents, keys) = (Extents { m: heads, n: BLOCK, k: width }, keys.tile(call.layer, *block));
            strided(cpu, extents, queries, keys, BLOCK, &mut products, BLOCK, false);
            add_heads(cpu.isa(), &products, &weights, scale, scores);
        }
        scores.truncate(self.position + 1);
        scores
    }
}

impl IndexerOps<Self> for Cpu {
    const HAS_INDEXERS: bool = true;

    fn rotate_index(cpu: &Self, rotation: &IndexRotation<'_, Self>, x: &HostRows) -> HostRows {
        let width = x.width();
        let mut out = HostRows::alloc(cpu, x.rows(), width);
        for_rows(cpu, &mut out, width, |row, out| {
            let (cos, sin) = rotation.rope.angles(rotation.positions[row]);
            let heads = x[row * width..(row + 1) * width].chunks_exact(rotation.width);
            for (to, from) in out.chunks_exact_mut(rotation.width).zip(heads) {
                let (rotated, rest) = to.split_at_mut(2 * cos.len());
                rotate(rotation.interleaved, [cos, sin], &from[..rotated.len()], rotated);
                rest.copy_from_slice(&from[rotated.len()..]);
            }
        });
        out
    }

    fn write_index(_: &Self, pool: &mut KvPool, layer: usize, spans: &[Span], keys: &HostRows) {
        let pool = pool.index_mut();
        for span in spans {
            for (position, row) in (span.start..).zip(span.rows.clone()).filter(|(at, _)| *at >= span.held) {
                let key = &keys[row * keys.width()..(row + 1) * keys.width()];
                pool.put(layer, span.blocks[position / BLOCK], position % BLOCK, key);
            }
        }
    }

    fn choose(cpu: &Self, call: IndexCall<'_>, pool: &KvPool, queries: &HostRows, weights: &HostRows) -> Chosen {
        let mut chosen = Chosen::empty(queries.rows(), &call);
        let mut words: Vec<Option<&mut [u32]>> = chosen.rows_mut().map(Some).collect();
        let mut sparse = Vec::new();
        for span in call.spans {
            for (position, row) in (span.start..).zip(span.rows.clone()) {
                if let Some(words) = words[row].take().filter(|words| !words.is_empty()) {
                    sparse.push(SparseRow { row, position, span, words });
                }
            }
        }
        for_each(cpu, &mut sparse, |_, row| {
            let scores = row.scores(cpu, call, pool.index(), [queries, weights]);
            choose_best(&scores, call.count, row.words);
        });
        chosen
    }
}
