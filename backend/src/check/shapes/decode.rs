//! Attention of rows that are decoded, each behind the keys of a prompt.

use std::ops::Range;

use super::compare::Named;
use super::numbers::Tile;
use crate::check::HostAccess;
use crate::{AttentionCall, AttentionShape, BlockId, KV_BLOCK, Span};

/// Tokens of the prompt before the decoded ones: several splits of keys.
const CONTEXT: usize = 10 * KV_BLOCK;

/// Rows `[q, k, v]` with scores of about variance 1.
fn qkv(tile: &Tile, shape: &AttentionShape, stream: usize, rows: usize) -> Vec<f32> {
    tile.take(stream, rows * shape.qkv_width(), 1.0)
}

/// Output and log-sum-exp of `rows` sequences with one new row each, behind one prompt that they share.
pub(super) fn decoded<B: HostAccess>(b: &B, tile: &Tile, shape: &AttentionShape, rows: usize) -> Vec<Named> {
    let (mut pool, width) = (b.kv_pool(shape), shape.qkv_width());
    let shared: Vec<_> = (0..CONTEXT / KV_BLOCK).map(|_| b.kv_take(&mut pool)).collect();
    let prompt = [Span { rows: 0..CONTEXT, start: 0, blocks: shared.clone(), held: 0, state: None }];
    b.kv_write(&mut pool, shape, 0, &prompt, &b.rows(&qkv(tile, shape, 1, CONTEXT), width));
    let span = |row: usize, own| {
        let blocks = shared.iter().copied().chain([own]).collect();
        Span { rows: row..row + 1, start: CONTEXT, blocks, held: CONTEXT, state: None }
    };
    let spans: Vec<_> = (0..rows).map(|row| span(row, b.kv_take(&mut pool))).collect();
    let next = b.rows(&qkv(tile, shape, 2, rows), width);
    b.kv_write(&mut pool, shape, 0, &spans, &next);
    let call = AttentionCall { shape, layer: 0, window: None, spans: &spans, chosen: None };
    let [out, lse] = b.attention(call, &pool, &next);
    vec![Named::of(b, "attention", &out), Named::of(b, "log-sum-exp", &lse)]
}

/// Output of the last row of a prompt: computed with the `together` last ones, and for each of `copies` as the next row of
/// so many sequences behind the others.
pub(super) fn last_rows<B: HostAccess>(
    b: &B,
    tile: &Tile,
    shape: &AttentionShape,
    together: usize,
    copies: &[usize],
) -> (Vec<f32>, Vec<Vec<f32>>) {
    let (width, len) = (shape.qkv_width(), CONTEXT + 1);
    let rows = qkv(tile, shape, 1, len);
    let (before, last) = rows.split_at(CONTEXT * width);
    let attend = |pool: &B::KvPool, spans: &[Span], rows: &B::Rows| {
        let call = AttentionCall { shape, layer: 0, window: None, spans, chosen: None };
        b.attention(call, pool, rows)
    };
    let span =
        |rows: Range<usize>, start: usize, blocks: Vec<BlockId>| Span { rows, start, blocks, held: start, state: None };
    let mut pool = b.kv_pool(shape);
    let blocks: Vec<_> = (0..len.div_ceil(KV_BLOCK)).map(|_| b.kv_take(&mut pool)).collect();
    let first = len - together.min(len);
    b.kv_write(&mut pool, shape, 0, &[span(0..first, 0, blocks.clone())], &b.rows(&rows[..first * width], width));
    let end = [span(0..len - first, first, blocks.clone())];
    let prompt = b.rows(&rows[first * width..], width);
    b.kv_write(&mut pool, shape, 0, &end, &prompt);
    let [out, _] = attend(&pool, &end, &prompt);
    let together = b.values(&b.gather(&out, &[CONTEXT - first]));

    let decode = |copies: &usize| {
        let mut pool = b.kv_pool(shape);
        let shared: Vec<_> = (0..CONTEXT / KV_BLOCK).map(|_| b.kv_take(&mut pool)).collect();
        b.kv_write(&mut pool, shape, 0, &[span(0..CONTEXT, 0, shared.clone())], &b.rows(before, width));
        let mut next_to = |row: usize| {
            let blocks = shared.iter().copied().chain([b.kv_take(&mut pool)]).collect();
            span(row..row + 1, CONTEXT, blocks)
        };
        let spans: Vec<_> = (0..*copies).map(&mut next_to).collect();
        let next = b.rows(&last.repeat(*copies), width);
        b.kv_write(&mut pool, shape, 0, &spans, &next);
        let [out, _] = attend(&pool, &spans, &next);
        b.values(&out)
    };
    (together, copies.iter().map(decode).collect())
}
