//! Forward pass of attention, in vectors of floats.

use super::super::Cpu;
use super::super::gemm::{Extents, Strided, strided};
use super::super::kv::FloatPool;
use super::super::parallel::SharedPtr;
use super::super::vexp::{exp, max, multiversion, sum_by};
use super::inputs::{QUERY_ROWS, Reach, chosen, group, slots};
use crate::{AttentionCall, AttentionShape, BlockId, KV_BLOCK as BLOCK, Span};

/// Keys and values in blocks of floats.
pub(super) trait KeyFloats: Sync {
    /// One head's transposed keys, `[head_dim][KV_BLOCK]`, and values, `[KV_BLOCK][head_dim]`, in a block.
    fn tile(&self, layer: usize, head: usize, id: BlockId) -> (&[f32], &[f32]);
}

impl KeyFloats for FloatPool {
    fn tile(&self, layer: usize, head: usize, id: BlockId) -> (&[f32], &[f32]) {
        Self::tile(self, layer, head, id)
    }
}

multiversion! {
    /// Replaces the scores of a tile, `s[rows, BLOCK]`, by exp(scale · score - m), updates the running maxima `m[rows]` and
    /// sums `l[rows]`, and rescales the rows of `o[rows, width]` to the new maxima. Row `i` sees the slots
    /// whose bits `seen[i]` has.
    fn softmax_tile(
        s: &mut [f32], seen: &[u32], scale: f32, m: &mut [f32], l: &mut [f32], o: &mut [f32], width: usize,
    ) {
        let stats = m.iter_mut().zip(l);
        let rows = s.as_chunks_mut::<BLOCK>().0;
        for (((s, seen), (m, l)), o) in rows.iter_mut().zip(seen).zip(stats).zip(o.chunks_exact_mut(width)) {
            if *seen == u32::MAX {
                for s in s.iter_mut() {
                    *s *= scale;
                }
            } else {
                for (j, s) in s.iter_mut().enumerate() {
                    *s = if seen >> j & 1 == 1 { *s * scale } else { f32::NEG_INFINITY };
                }
            }
            let top = max(s);
            if top == f32::NEG_INFINITY {
                s.fill(0.0);
                continue;
            }
            let new = if top > *m { top } else { *m };
            let rescale = exp(*m - new);
            for s in s.iter_mut() {
                *s = exp(*s - new);
            }
            *l = *l * rescale + sum_by(s, |p| p);
            *m = new;
            if rescale != 1.0 {
                for o in o {
                    *o *= rescale;
                }
            }
        }
    }
}

multiversion! {
    fn scale_row(x: &mut [f32], scale: f32) {
        for x in x {
            *x *= scale;
        }
    }
}

/// Query rows that share a key head: positions of one query head in prefill and training, the heads of one position in
/// decoding.
struct QueryTile {
    span: usize,
    kv_head: usize,
    /// Index of the first row's first element in `qkv`, and distance of rows.
    at: usize,
    stride: usize,
    rows: usize,
    /// Position of row i is `position + i * step`.
    position: usize,
    step: usize,
}

fn query_tiles(shape: &AttentionShape, spans: &[Span], width: usize) -> Vec<QueryTile> {
    let (hd, group) = (shape.head_dim, group(shape));
    let mut tiles = Vec::new();
    for (i, span) in spans.iter().enumerate() {
        if span.rows.len() == 1 {
            tiles.extend((0..shape.kv_heads).map(|kv_head| QueryTile {
                span: i,
                kv_head,
                at: span.rows.start * width + kv_head * group * hd,
                stride: hd,
                rows: group,
                position: span.start,
                step: 0,
            }));
            continue;
        }
        for first in (0..span.rows.len()).step_by(QUERY_ROWS) {
            tiles.extend((0..shape.heads).map(|head| QueryTile {
                span: i,
                kv_head: head / group,
                at: (span.rows.start + first) * width + head * hd,
                stride: width,
                rows: (span.rows.len() - first).min(QUERY_ROWS),
                position: span.start + first,
                step: 1,
            }));
        }
    }
    tiles
}

/// Computes [`attention`](super::attention) in vectors of floats.
pub(super) fn attention(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    reach: Reach,
    kv: &impl KeyFloats,
    qkv: &[f32],
    out: &mut [f32],
    lse: &mut [f32],
) {
    let AttentionCall { shape, spans, .. } = call;
    let (hd, width, q_width) = (shape.head_dim, shape.qkv_width(), shape.q_width());
    let tiles = query_tiles(shape, spans, width);
    let (out_at, lse_at) = (SharedPtr(out.as_mut_ptr()), SharedPtr(lse.as_mut_ptr()));
    let (out_len, lse_len) = (out.len(), lse.len());
    cpu.pool.run(tiles.len(), |i| {
        let tile = &tiles[i];
        let mut o = vec![0f32; tile.rows * hd];
        let (mut m, mut l) = (vec![f32::NEG_INFINITY; tile.rows], vec![0f32; tile.rows]);
        attend(cpu, call, reach, kv, tile, qkv, [&mut o, &mut m, &mut l]);
        for r in 0..tile.rows {
            let (row, column) = ((tile.at + r * tile.stride) / width, (tile.at + r * tile.stride) % width);
            scale_row(cpu.isa(), &mut o[r * hd..(r + 1) * hd], 1.0 / l[r]);
            let (to, stat) = (row * q_width + column, row * shape.heads + column / hd);
            assert!(to + hd <= out_len && stat < lse_len);
            // SAFETY: in bounds; every (row, head) belongs to one tile.
            unsafe {
                std::ptr::copy_nonoverlapping(o[r * hd..].as_ptr(), out_at.ptr().add(to), hd);
                *lse_at.ptr().add(stat) = m[r] + l[r].ln();
            }
        }
    });
}

/// Attention of a tile of queries over all blocks that they see: `o[rows, head_dim]`, not yet divided by the sums `l[rows]`
/// of exp(score - m), where `m[rows]` are the largest scores.
fn attend(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    reach: Reach,
    kv: &impl KeyFloats,
    tile: &QueryTile,
    qkv: &[f32],
    [o, m, l]: [&mut [f32]; 3],
) {
    let AttentionCall { shape, layer, window, .. } = call;
    let (hd, rows, span) = (shape.head_dim, tile.rows, &call.spans[tile.span]);
    let sees = |position: usize| reach.keys(span, position, window);
    let last = tile.position + (rows - 1) * tile.step;
    let blocks = sees(tile.position).start / BLOCK..sees(last).end.div_ceil(BLOCK);
    let mut s = [0f32; QUERY_ROWS * BLOCK];
    let mut seen = [0; QUERY_ROWS];
    // A group of heads may have more rows than a tile.
    for base in (0..rows).step_by(QUERY_ROWS) {
        let count = (rows - base).min(QUERY_ROWS);
        let queries = Strided { data: &qkv[tile.at + base * tile.stride..], row_stride: tile.stride, col_stride: 1 };
        for block in blocks.clone() {
            let (kt, v) = kv.tile(layer, tile.kv_head, span.blocks[block]);
            strided(cpu, Extents { m: count, n: BLOCK, k: hd }, queries, kt, BLOCK, &mut s, BLOCK, false);
            for (r, seen) in seen[..count].iter_mut().enumerate() {
                let ahead = (base + r) * tile.step;
                // In decoding all queries are of one row.
                let row = span.rows.start + tile.position + ahead - span.start;
                *seen = slots(&sees(tile.position + ahead), block) & chosen(&call, row, block);
            }
            let (m, l) = (&mut m[base..base + count], &mut l[base..base + count]);
            let (s_rows, o_rows) = (&mut s[..count * BLOCK], &mut o[base * hd..(base + count) * hd]);
            softmax_tile(cpu.isa(), s_rows, &seen[..count], shape.scale, m, l, o_rows, hd);
            let p = Strided { data: &s, row_stride: BLOCK, col_stride: 1 };
            strided(cpu, Extents { m: count, n: hd, k: BLOCK }, p, v, hd, &mut o[base * hd..], hd, true);
        }
    }
}
