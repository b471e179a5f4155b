//! Causal grouped-query attention over paged keys and values, in tiles of [`BLOCK`] keys with a running
//! softmax (Dao et al. 2022, arXiv:2205.14135); the score matrix is never formed. Tiles start at the
//! sequence's first token, so a row's arithmetic is the same in prefill, decoding and training.

use std::ops::Range;

use super::elementwise::for_rows;
use super::gemm::{Extents, Strided, strided};
use super::vexp::{dot, exp, max, multiversion, sum_by};
use super::{Cpu, Shared};

pub use super::kv::{BLOCK, KvBlock, KvSequence, write_kv};

/// Query rows of a tile.
const ROWS: usize = 48;

/// Extents of the attention of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Decoder blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

impl AttentionShape {
    /// Elements of the queries of a row.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of the keys, or values, of a row.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Elements of a row of queries, keys and values.
    pub fn qkv_width(&self) -> usize {
        self.q_width() + 2 * self.kv_width()
    }

    /// Query heads that share a key head.
    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Elements of a block of one head: keys transposed `[head_dim][BLOCK]`, then values `[BLOCK][head_dim]`.
    pub(super) fn head_len(&self) -> usize {
        2 * self.head_dim * BLOCK
    }

    /// Elements of a block of all layers and heads.
    pub fn block_len(&self) -> usize {
        self.layers * self.kv_heads * self.head_len()
    }

    /// Where a head's part of a block begins.
    pub(super) fn at(&self, layer: usize, head: usize) -> usize {
        (layer * self.kv_heads + head) * self.head_len()
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// A sequence's part in a pass: rows `rows` of the batch are its positions from `start` on.
pub struct Span<'a> {
    /// Rows of the batch.
    pub rows: Range<usize>,
    /// Position of the first row.
    pub start: usize,
    /// Its keys and values, written up to the last row.
    pub kv: &'a KvSequence,
}

/// Whether spans have their rows in order and to themselves.
fn disjoint(spans: &[Span<'_>]) -> bool {
    spans.is_sorted_by(|a, b| a.rows.end <= b.rows.start)
}

/// Keys that a row at `position` sees.
fn visible(position: usize, window: Option<usize>) -> Range<usize> {
    let first = window.map_or(0, |w| (position + 1).saturating_sub(w));
    first..position + 1
}

/// The visible part of a block, as slots.
fn slots(visible: &Range<usize>, block: usize) -> Range<usize> {
    let base = block * BLOCK;
    let start = visible.start.clamp(base, base + BLOCK) - base;
    let end = visible.end.clamp(base, base + BLOCK) - base;
    start..end.max(start)
}

multiversion! {
    /// Turns the scores of a tile into probabilities relative to the running maxima `m`, updates `m` and the running
    /// sums `l`, and shrinks the rows of `o` (of `width` elements) accordingly. Row `i` sees the slots `seen[i]`.
    fn softmax_tile(
        s: &mut [f32], seen: &[(usize, usize)], scale: f32, m: &mut [f32], l: &mut [f32], o: &mut [f32], width: usize,
    ) {
        let stats = m.iter_mut().zip(l);
        let rows = s.as_chunks_mut::<BLOCK>().0;
        for (((s, seen), (m, l)), o) in rows.iter_mut().zip(seen).zip(stats).zip(o.chunks_exact_mut(width)) {
            if *seen == (0, BLOCK) {
                for s in s.iter_mut() {
                    *s *= scale;
                }
            } else {
                for (j, s) in s.iter_mut().enumerate() {
                    *s = if j >= seen.0 && j < seen.1 { *s * scale } else { f32::NEG_INFINITY };
                }
            }
            let top = max(s);
            if top == f32::NEG_INFINITY {
                s.fill(0.0);
                continue;
            }
            let new = if top > *m { top } else { *m };
            let shrink = exp(*m - new);
            for s in s.iter_mut() {
                *s = exp(*s - new);
            }
            *l = *l * shrink + sum_by(s, |p| p);
            *m = new;
            if shrink != 1.0 {
                for o in o {
                    *o *= shrink;
                }
            }
        }
    }
}

multiversion! {
    fn scale_row(x: &mut [f32], factor: f32) {
        for x in x {
            *x *= factor;
        }
    }
}

/// Query rows that share a head's keys: positions of one head, or the heads of one position.
struct QueryTile {
    span: usize,
    kv_head: usize,
    /// Element of the first row in the query matrix and distance of rows.
    at: usize,
    stride: usize,
    rows: usize,
    /// Position of row i is `position + i * step`.
    position: usize,
    step: usize,
}

fn query_tiles(shape: &AttentionShape, spans: &[Span<'_>], width: usize) -> Vec<QueryTile> {
    let (hd, group) = (shape.head_dim, shape.group());
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
        for first in (0..span.rows.len()).step_by(ROWS) {
            tiles.extend((0..shape.heads).map(|head| QueryTile {
                span: i,
                kv_head: head / group,
                at: (span.rows.start + first) * width + head * hd,
                stride: width,
                rows: (span.rows.len() - first).min(ROWS),
                position: span.start + first,
                step: 1,
            }));
        }
    }
    tiles
}

/// `out[rows, heads * head_dim]` and the log-sum-exp of the scores `lse[rows, heads]`, from rotated queries
/// in `qkv` and the sequences' keys and values.
pub fn attention(
    cpu: &Cpu,
    shape: &AttentionShape,
    layer: usize,
    window: Option<usize>,
    spans: &[Span<'_>],
    qkv: &[f32],
    out: &mut [f32],
    lse: &mut [f32],
) {
    let (hd, width, q_width) = (shape.head_dim, shape.qkv_width(), shape.q_width());
    assert!(disjoint(spans), "spans overlap");
    let tiles = query_tiles(shape, spans, width);
    let (out_at, lse_at) = (Shared(out.as_mut_ptr()), Shared(lse.as_mut_ptr()));
    let (out_len, lse_len) = (out.len(), lse.len());
    cpu.pool.run(tiles.len(), |i| {
        let tile = &tiles[i];
        let mut o = vec![0f32; tile.rows * hd];
        let (mut m, mut l) = (vec![f32::NEG_INFINITY; tile.rows], vec![0f32; tile.rows]);
        attend(cpu, shape, layer, window, &spans[tile.span], tile, qkv, &mut o, &mut m, &mut l);
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

fn attend(
    cpu: &Cpu,
    shape: &AttentionShape,
    layer: usize,
    window: Option<usize>,
    span: &Span<'_>,
    tile: &QueryTile,
    qkv: &[f32],
    o: &mut [f32],
    m: &mut [f32],
    l: &mut [f32],
) {
    let (hd, rows) = (shape.head_dim, tile.rows);
    let last = tile.position + (rows - 1) * tile.step;
    let mut s = [0f32; ROWS * BLOCK];
    let mut seen = [(0, 0); ROWS];
    // A group of heads may be larger than a tile: then rows are taken in tiles as well.
    for base in (0..rows).step_by(ROWS) {
        let count = (rows - base).min(ROWS);
        let queries = Strided { data: &qkv[tile.at + base * tile.stride..], row_stride: tile.stride, col_stride: 1 };
        for block in visible(tile.position, window).start / BLOCK..=last / BLOCK {
            let (kt, v) = span.kv.tile(shape, layer, tile.kv_head, block);
            strided(cpu, Extents { m: count, n: BLOCK, k: hd }, queries, kt, BLOCK, &mut s, BLOCK, false);
            for (r, seen) in seen[..count].iter_mut().enumerate() {
                let slots = slots(&visible(tile.position + (base + r) * tile.step, window), block);
                *seen = (slots.start, slots.end);
            }
            let (m, l) = (&mut m[base..base + count], &mut l[base..base + count]);
            let (s_rows, o_rows) = (&mut s[..count * BLOCK], &mut o[base * hd..(base + count) * hd]);
            softmax_tile(cpu.isa(), s_rows, &seen[..count], shape.scale(), m, l, o_rows, hd);
            let p = Strided { data: &s, row_stride: BLOCK, col_stride: 1 };
            strided(cpu, Extents { m: count, n: hd, k: BLOCK }, p, v, hd, &mut o[base * hd..], hd, true);
        }
    }
}

multiversion! {
    /// Turns the scores of a tile into probabilities (in `s`) and `dp` into the gradient by scaled scores. Row `i` sees
    /// the slots `seen[i]`; its log-sum-exp and delta are `stats[i]`.
    fn softmax_backward(s: &mut [f32], dp: &mut [f32], seen: &[(usize, usize)], scale: f32, stats: &[(f32, f32)]) {
        let rows = s.as_chunks_mut::<BLOCK>().0.iter_mut().zip(dp.as_chunks_mut::<BLOCK>().0);
        for ((s, dp), (seen, (lse, delta))) in rows.zip(seen.iter().zip(stats)) {
            for (s, dp) in s.iter_mut().zip(dp.iter_mut()) {
                *s = exp(*s * scale - lse);
                *dp = *s * (*dp - delta) * scale;
            }
            // A score that the row does not see may be anything.
            s[..seen.0].fill(0.0);
            dp[..seen.0].fill(0.0);
            s[seen.1..].fill(0.0);
            dp[seen.1..].fill(0.0);
        }
    }
}

multiversion! {
    fn dot_rows(x: &[f32], y: &[f32]) -> f32 {
        dot(x, y)
    }
}

/// What the forward pass left and what comes from above, for [`attention_backward`].
pub struct AttentionGradient<'a> {
    /// Rotated queries, keys and values, `[rows, qkv_width]`.
    pub qkv: &'a [f32],
    /// Output of the forward pass, `[rows, q_width]`.
    pub out: &'a [f32],
    /// Log-sum-exp of the scores, `[rows, heads]`.
    pub lse: &'a [f32],
    /// Gradient by the output, `[rows, q_width]`.
    pub dout: &'a [f32],
}

/// Gradient by rotated queries, keys and values, `dqkv[rows, qkv_width]` (overwritten). Every span starts at
/// position 0. Sums run over queries in order, sequence by sequence.
pub fn attention_backward(
    cpu: &Cpu,
    shape: &AttentionShape,
    layer: usize,
    window: Option<usize>,
    spans: &[Span<'_>],
    g: &AttentionGradient<'_>,
    dqkv: &mut [f32],
) {
    let (hd, q_width) = (shape.head_dim, shape.q_width());
    assert!(disjoint(spans), "spans overlap");
    let mut delta = vec![0f32; g.lse.len()];
    for_rows(cpu, &mut delta, shape.heads, |row, delta| {
        for (head, delta) in delta.iter_mut().enumerate() {
            let at = row * q_width + head * hd;
            *delta = dot_rows(cpu.isa(), &g.out[at..at + hd], &g.dout[at..at + hd]);
        }
    });
    let base = Shared(dqkv.as_mut_ptr());
    let len = dqkv.len();
    cpu.pool.run(spans.len() * shape.kv_heads, |task| {
        let (span, kv_head) = (&spans[task / shape.kv_heads], task % shape.kv_heads);
        let grads = HeadGradient::compute(cpu, shape, layer, window, span, kv_head, g, &delta);
        grads.store(shape, span, kv_head, len, base);
    });
}

/// Gradients of one key head and its query heads, for one sequence.
struct HeadGradient {
    /// `[group][rows][head_dim]`
    dq: Vec<f32>,
    /// `[rows rounded up to blocks][head_dim]`
    dk: Vec<f32>,
    dv: Vec<f32>,
}

impl HeadGradient {
    fn compute(
        cpu: &Cpu,
        shape: &AttentionShape,
        layer: usize,
        window: Option<usize>,
        span: &Span<'_>,
        kv_head: usize,
        g: &AttentionGradient<'_>,
        delta: &[f32],
    ) -> Self {
        let (hd, group, rows) = (shape.head_dim, shape.group(), span.rows.len());
        let blocks = rows.div_ceil(BLOCK);
        let mut grads = Self {
            dq: vec![0.0; group * rows * hd],
            dk: vec![0.0; blocks * BLOCK * hd],
            dv: vec![0.0; blocks * BLOCK * hd],
        };
        let (mut k, mut vt) = (vec![0f32; BLOCK * hd], vec![0f32; hd * BLOCK]);
        for block in 0..blocks {
            let (kt, v) = span.kv.tile(shape, layer, kv_head, block);
            for j in 0..BLOCK {
                for d in 0..hd {
                    k[j * hd + d] = kt[d * BLOCK + j];
                    vt[d * BLOCK + j] = v[j * hd + d];
                }
            }
            let tiles = Tiles { block, kt, k: &k, vt: &vt };
            for member in 0..group {
                grads.add_block(cpu, shape, window, span, kv_head * group + member, member, &tiles, g, delta);
            }
        }
        grads
    }

    fn add_block(
        &mut self,
        cpu: &Cpu,
        shape: &AttentionShape,
        window: Option<usize>,
        span: &Span<'_>,
        head: usize,
        member: usize,
        tiles: &Tiles<'_>,
        g: &AttentionGradient<'_>,
        delta: &[f32],
    ) {
        let (hd, rows, block) = (shape.head_dim, span.rows.len(), tiles.block);
        let (width, q_width) = (shape.qkv_width(), shape.q_width());
        let (mut s, mut ds) = ([0f32; ROWS * BLOCK], [0f32; ROWS * BLOCK]);
        let (mut seen, mut stats) = ([(0, 0); ROWS], [(0.0, 0.0); ROWS]);
        let dk = &mut self.dk[block * BLOCK * hd..(block + 1) * BLOCK * hd];
        let dv = &mut self.dv[block * BLOCK * hd..(block + 1) * BLOCK * hd];
        for first in (block * BLOCK / ROWS * ROWS..rows).step_by(ROWS) {
            let count = (rows - first).min(ROWS);
            if visible(first, window).start >= (block + 1) * BLOCK {
                break;
            }
            let row = span.rows.start + first;
            let q = &g.qkv[row * width + head * hd..];
            let dout = &g.dout[row * q_width + head * hd..];
            let scores = Extents { m: count, n: BLOCK, k: hd };
            let queries = Strided { data: q, row_stride: width, col_stride: 1 };
            strided(cpu, scores, queries, tiles.kt, BLOCK, &mut s, BLOCK, false);
            let douts = Strided { data: dout, row_stride: q_width, col_stride: 1 };
            strided(cpu, scores, douts, tiles.vt, BLOCK, &mut ds, BLOCK, false);
            for r in 0..count {
                let slots = slots(&visible(first + r, window), block);
                let stat = (row + r) * shape.heads + head;
                seen[r] = (slots.start, slots.end);
                stats[r] = (g.lse[stat], delta[stat]);
            }
            let (p, dp) = (&mut s[..count * BLOCK], &mut ds[..count * BLOCK]);
            softmax_backward(cpu.isa(), p, dp, &seen[..count], shape.scale(), &stats[..count]);
            let dq = &mut self.dq[(member * rows + first) * hd..];
            let by_row = Strided { data: &ds, row_stride: BLOCK, col_stride: 1 };
            strided(cpu, Extents { m: count, n: hd, k: BLOCK }, by_row, tiles.k, hd, dq, hd, true);
            let by_key = Extents { m: BLOCK, n: hd, k: count };
            let (dst, pt) = (
                Strided { data: &ds, row_stride: 1, col_stride: BLOCK },
                Strided { data: &s, row_stride: 1, col_stride: BLOCK },
            );
            strided(cpu, by_key, dst, q, width, dk, hd, true);
            strided(cpu, by_key, pt, dout, q_width, dv, hd, true);
        }
    }

    fn store(&self, shape: &AttentionShape, span: &Span<'_>, kv_head: usize, len: usize, dqkv: Shared<f32>) {
        let (hd, group, rows, width) = (shape.head_dim, shape.group(), span.rows.len(), shape.qkv_width());
        let put = |row: usize, column: usize, from: &[f32]| {
            let at = (span.rows.start + row) * width + column;
            assert!(at + hd <= len && from.len() >= hd);
            // SAFETY: in bounds; tasks have disjoint rows or heads.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), dqkv.ptr().add(at), hd) };
        };
        let (q, kv) = (shape.q_width(), shape.kv_width());
        for row in 0..rows {
            for member in 0..group {
                put(row, (kv_head * group + member) * hd, &self.dq[(member * rows + row) * hd..]);
            }
            put(row, q + kv_head * hd, &self.dk[row * hd..]);
            put(row, q + kv + kv_head * hd, &self.dv[row * hd..]);
        }
    }
}

/// A block's keys and values in both orders.
struct Tiles<'a> {
    block: usize,
    /// Keys `[head_dim][BLOCK]`.
    kt: &'a [f32],
    /// Keys `[BLOCK][head_dim]`.
    k: &'a [f32],
    /// Values `[head_dim][BLOCK]`.
    vt: &'a [f32],
}
