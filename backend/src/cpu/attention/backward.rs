//! Attention's backward pass: probabilities are recomputed tile by tile from the log-sum-exp of the scores.

use super::super::Cpu;
use super::super::gemm::{Extents, Strided, strided};
use super::super::kv::FloatPool;
use super::super::parallel::{SharedPtr, for_rows};
use super::super::vexp::{dot, exp, multiversion};
use super::inputs::{AttentionGradient, QUERY_ROWS, chosen, group, slots, visible};
use crate::{AttentionCall, AttentionShape, KV_BLOCK as BLOCK, Span};

multiversion! {
    /// Replaces the scores of a tile, `s[rows, BLOCK]`, by probabilities, and `dp`, the gradient with respect to these, by the
    /// gradient with respect to the unscaled scores. Row `i` sees the slots whose bits
    /// `seen[i]` has; its log-sum-exp and delta, the dot
    /// product of its output and that output's gradient, are `stats[i]`.
    fn softmax_backward(s: &mut [f32], dp: &mut [f32], seen: &[u32], scale: f32, stats: &[(f32, f32)]) {
        let rows = s.as_chunks_mut::<BLOCK>().0.iter_mut().zip(dp.as_chunks_mut::<BLOCK>().0);
        for ((s, dp), (seen, (lse, delta))) in rows.zip(seen.iter().zip(stats)) {
            for (s, dp) in s.iter_mut().zip(dp.iter_mut()) {
                *s = exp(*s * scale - lse);
                *dp = *s * (*dp - delta) * scale;
            }
            if *seen == u32::MAX {
                continue;
            }
            // Slots that the row does not see may hold anything.
            for (j, (s, dp)) in s.iter_mut().zip(dp.iter_mut()).enumerate() {
                let sees = seen >> j & 1 == 1;
                *s = if sees { *s } else { 0.0 };
                *dp = if sees { *dp } else { 0.0 };
            }
        }
    }
}

multiversion! {
    fn dot_rows(x: &[f32], y: &[f32]) -> f32 {
        dot(x, y)
    }
}

/// Computes [`attention_backward`](super::attention_backward) in vectors of floats.
pub(super) fn attention_backward(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    kv: &FloatPool,
    g: &AttentionGradient<'_>,
    d_qkv: &mut [f32],
) {
    let AttentionCall { shape, spans, .. } = call;
    let (hd, q_width) = (shape.head_dim, shape.q_width());
    let mut delta = vec![0f32; g.lse.len()];
    for_rows(cpu, &mut delta, shape.heads, |row, delta| {
        for (head, delta) in delta.iter_mut().enumerate() {
            let at = row * q_width + head * hd;
            *delta = dot_rows(cpu.isa(), &g.out[at..at + hd], &g.d_out[at..at + hd]);
        }
    });
    let base = SharedPtr(d_qkv.as_mut_ptr());
    let len = d_qkv.len();
    cpu.pool.run(spans.len() * shape.kv_heads, |task| {
        let (span, kv_head) = (&spans[task / shape.kv_heads], task % shape.kv_heads);
        let grads = KvHeadGradient::compute(cpu, call, kv, span, kv_head, g, &delta);
        grads.store(shape, span, kv_head, len, base);
    });
}

/// Gradients with respect to one key head, its values and its query heads, for one sequence.
struct KvHeadGradient {
    /// Gradient of the queries: `[group][rows][head_dim]`.
    dq: Vec<f32>,
    /// Gradient of the keys: `[rows rounded up to blocks][head_dim]`.
    dk: Vec<f32>,
    dv: Vec<f32>,
}

impl KvHeadGradient {
    fn compute(
        cpu: &Cpu,
        call: AttentionCall<'_>,
        kv: &FloatPool,
        span: &Span,
        kv_head: usize,
        g: &AttentionGradient<'_>,
        delta: &[f32],
    ) -> Self {
        let AttentionCall { shape, layer, .. } = call;
        let (hd, group, rows) = (shape.head_dim, group(shape), span.rows.len());
        let blocks = rows.div_ceil(BLOCK);
        let mut grads = Self {
            dq: vec![0.0; group * rows * hd],
            dk: vec![0.0; blocks * BLOCK * hd],
            dv: vec![0.0; blocks * BLOCK * hd],
        };
        let (mut k, mut vt) = (vec![0f32; BLOCK * hd], vec![0f32; hd * BLOCK]);
        for block in 0..blocks {
            let (kt, v) = kv.tile(layer, kv_head, span.blocks[block]);
            for j in 0..BLOCK {
                for d in 0..hd {
                    k[j * hd + d] = kt[d * BLOCK + j];
                    vt[d * BLOCK + j] = v[j * hd + d];
                }
            }
            let tiles = KvTiles { block, kt, k: &k, vt: &vt };
            for member in 0..group {
                grads.add_block(cpu, call, span, kv_head * group + member, member, &tiles, g, delta);
            }
        }
        grads
    }

    fn add_block(
        &mut self,
        cpu: &Cpu,
        call: AttentionCall<'_>,
        span: &Span,
        head: usize,
        member: usize,
        tiles: &KvTiles<'_>,
        g: &AttentionGradient<'_>,
        delta: &[f32],
    ) {
        let AttentionCall { shape, window, .. } = call;
        let (hd, rows, block) = (shape.head_dim, span.rows.len(), tiles.block);
        let (width, q_width) = (shape.qkv_width(), shape.q_width());
        let (mut s, mut ds) = ([0f32; QUERY_ROWS * BLOCK], [0f32; QUERY_ROWS * BLOCK]);
        let (mut seen, mut stats) = ([0; QUERY_ROWS], [(0.0, 0.0); QUERY_ROWS]);
        let dk = &mut self.dk[block * BLOCK * hd..(block + 1) * BLOCK * hd];
        let dv = &mut self.dv[block * BLOCK * hd..(block + 1) * BLOCK * hd];
        for first in (block * BLOCK / QUERY_ROWS * QUERY_ROWS..rows).step_by(QUERY_ROWS) {
            let count = (rows - first).min(QUERY_ROWS);
            if visible(first, window).start >= (block + 1) * BLOCK {
                break;
            }
            let row = span.rows.start + first;
            let q = &g.qkv[row * width + head * hd..];
            let d_out = &g.d_out[row * q_width + head * hd..];
            let scores = Extents { m: count, n: BLOCK, k: hd };
            let queries = Strided { data: q, row_stride: width, col_stride: 1 };
            strided(cpu, scores, queries, tiles.kt, BLOCK, &mut s, BLOCK, false);
            let d_out_rows = Strided { data: d_out, row_stride: q_width, col_stride: 1 };
            strided(cpu, scores, d_out_rows, tiles.vt, BLOCK, &mut ds, BLOCK, false);
            for r in 0..count {
                let stat = (row + r) * shape.heads + head;
                seen[r] = slots(&visible(first + r, window), block) & chosen(&call, row + r, block);
                stats[r] = (g.lse[stat], delta[stat]);
            }
            let (p, dp) = (&mut s[..count * BLOCK], &mut ds[..count * BLOCK]);
            softmax_backward(cpu.isa(), p, dp, &seen[..count], shape.scale, &stats[..count]);
            let dq = &mut self.dq[(member * rows + first) * hd..];
            let by_row = Strided { data: &ds, row_stride: BLOCK, col_stride: 1 };
            strided(cpu, Extents { m: count, n: hd, k: BLOCK }, by_row, tiles.k, hd, dq, hd, true);
            let by_key = Extents { m: BLOCK, n: hd, k: count };
            let (dst, pt) = (
                Strided { data: &ds, row_stride: 1, col_stride: BLOCK },
                Strided { data: &s, row_stride: 1, col_stride: BLOCK },
            );
            strided(cpu, by_key, dst, q, width, dk, hd, true);
            strided(cpu, by_key, pt, d_out, q_width, dv, hd, true);
        }
    }

    fn store(&self, shape: &AttentionShape, span: &Span, kv_head: usize, len: usize, d_qkv: SharedPtr<f32>) {
        let (hd, group, rows, width) = (shape.head_dim, group(shape), span.rows.len(), shape.qkv_width());
        let put = |row: usize, column: usize, from: &[f32]| {
            let at = (span.rows.start + row) * width + column;
            assert!(at + hd <= len && from.len() >= hd);
            // SAFETY: in bounds; tasks have disjoint rows or heads.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), d_qkv.ptr().add(at), hd) };
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
struct KvTiles<'a> {
    block: usize,
    /// Keys, transposed to `[head_dim][BLOCK]`.
    kt: &'a [f32],
    /// Keys by row: `[BLOCK][head_dim]`.
    k: &'a [f32],
    /// Values, transposed to `[head_dim][BLOCK]`.
    vt: &'a [f32],
}
