//! Indexers of sparse attention by their formula.

use super::{KvPool, Matrix, Reference, dot};
use crate::{Chosen, IndexCall, IndexRotation, IndexerOps, KV_BLOCK, Rows, Span};

impl KvPool {
    /// Place of an indexer's key in its block.
    fn index_at(&self, layer: usize, position: usize) -> std::ops::Range<usize> {
        let at = (layer * KV_BLOCK + position % KV_BLOCK) * self.shape.index.width;
        at..at + self.shape.index.width
    }
}

impl IndexerOps<Self> for Reference {
    const HAS_INDEXERS: bool = true;

    fn rotate_index(_: &Self, rotation: &IndexRotation<'_, Self>, x: &Matrix) -> Matrix {
        let (mut out, half) = (x.clone(), rotation.rope.half);
        for (row, position) in rotation.positions.iter().enumerate() {
            let angles = &rotation.rope.table[*position as usize * half..][..half];
            let heads = out.row_mut(row).chunks_exact_mut(rotation.width);
            for (head, from) in heads.zip(x.row(row).chunks_exact(rotation.width)) {
                for (i, (cos, sin)) in angles.iter().enumerate() {
                    let (a, b) = if rotation.interleaved { (2 * i, 2 * i + 1) } else { (i, i + half) };
                    head[i] = from[a] * cos - from[b] * sin;
                    head[i + half] = from[b] * cos + from[a] * sin;
                }
            }
        }
        out
    }

    fn write_index(_: &Self, pool: &mut KvPool, layer: usize, spans: &[Span], keys: &Matrix) {
        for span in spans {
            for (position, row) in (span.start..).zip(span.rows.clone()).filter(|(at, _)| *at >= span.held) {
                let at = pool.index_at(layer, position);
                pool.index[span.blocks[position / KV_BLOCK].0 as usize][at].copy_from_slice(keys.row(row));
            }
        }
    }

    fn choose(_: &Self, call: IndexCall<'_>, pool: &KvPool, queries: &Matrix, weights: &Matrix) -> Chosen {
        let mut chosen = Chosen::empty(queries.rows(), &call);
        let place = |row: usize| {
            let span = call.spans.iter().find(|span| span.rows.contains(&row));
            span.map(|span| (span, span.start + row - span.rows.start))
        };
        for (row, words) in chosen.rows_mut().enumerate().filter(|(_, words)| !words.is_empty()) {
            let Some((span, position)) = place(row) else { continue };
            let score = |at: usize| {
                let key = &pool.index[span.blocks[at / KV_BLOCK].0 as usize][pool.index_at(call.layer, at)];
                let heads = queries.row(row).chunks_exact(key.len()).zip(weights.row(row));
                let part = |(query, weight): (&[f32], &f32)| {
                    weight / (call.heads as f32).sqrt() * (dot(query, key) / (key.len() as f32).sqrt()).max(0.0)
                };
                heads.map(part).fold(0.0, |sum, part| sum + part)
            };
            let mut scores: Vec<(usize, f32)> = (0..position + 1).map(|at| (at, score(at))).collect();
            // A stable sort: of equal scores the first position comes first.
            scores.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            for (at, _) in scores.into_iter().take(call.count) {
                words[at / KV_BLOCK] |= 1 << (at % KV_BLOCK);
            }
        }
        chosen
    }
}
