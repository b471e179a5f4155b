//! Causal attention with a full row of scores, and rotation.

use super::{KvPool, Matrix, Reference, Rope, add_scaled, dot, log_sum_exp};
use crate::host::HostParams;
use crate::{AttentionCall, AttentionShape, KV_BLOCK, Norm, Rotation, Rows, Span};

use super::norm::{norm_row, norm_row_backward};

impl KvPool {
    /// The key (0) or value (1) of a position and head.
    fn get(&self, part: usize, layer: usize, span: &Span, position: usize, head: usize) -> &[f32] {
        let block = &self.blocks[span.blocks[position / KV_BLOCK].0 as usize][part];
        &block[self.at(layer, position) + head * self.shape.head_dim..][..self.shape.head_dim]
    }

    fn at(&self, layer: usize, position: usize) -> usize {
        (layer * KV_BLOCK + position % KV_BLOCK) * self.shape.kv_width()
    }
}

pub(super) fn write(pool: &mut KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &Matrix) {
    let (q, kv) = (shape.q_width(), shape.kv_width());
    for span in spans {
        for (i, row) in span.rows.clone().enumerate() {
            let position = span.start + i;
            if position < span.held {
                continue;
            }
            let at = pool.at(layer, position);
            for (part, block) in pool.blocks[span.blocks[position / KV_BLOCK].0 as usize].iter_mut().enumerate() {
                block[at..at + kv].copy_from_slice(&qkv.row(row)[q + part * kv..][..kv]);
            }
        }
    }
}

/// A query: its row, position and head, and the keys that it sees.
struct Query<'a> {
    span: &'a Span,
    row: usize,
    head: usize,
    keys: Vec<usize>,
}

fn queries<'a>(call: &AttentionCall<'a>) -> impl Iterator<Item = Query<'a>> {
    let (heads, window, chosen) = (call.shape.heads, call.window, call.chosen);
    call.spans.iter().flat_map(move |span| {
        span.rows.clone().enumerate().flat_map(move |(i, row)| {
            let position = span.start + i;
            let first = window.map_or(0, |window| (position + 1).saturating_sub(window));
            let sees =
                |key: &usize| chosen.is_none_or(|chosen| chosen.of(row, key / KV_BLOCK) >> (key % KV_BLOCK) & 1 == 1);
            let keys: Vec<usize> = (first..position + 1).filter(sees).collect();
            (0..heads).map(move |head| Query { span, row, head, keys: keys.clone() })
        })
    })
}

pub(super) fn forward(call: AttentionCall<'_>, kv: &KvPool, qkv: &Matrix) -> [Matrix; 2] {
    let (shape, hd) = (call.shape, call.shape.head_dim);
    let [mut out, mut lse] = [shape.q_width(), shape.heads].map(|width| Matrix::zeros(qkv.rows(), width));
    for Query { span, row, head, keys } in queries(&call) {
        let (q, own) = (&qkv.row(row)[head * hd..][..hd], head / (shape.heads / shape.kv_heads));
        let score = |key: &usize| dot(q, kv.get(0, call.layer, span, *key, own)) * shape.scale;
        let scores: Vec<f32> = keys.iter().map(score).collect();
        let sum = log_sum_exp(&scores);
        for (key, score) in keys.into_iter().zip(scores) {
            let value = kv.get(1, call.layer, span, key, own);
            add_scaled(&mut out.row_mut(row)[head * hd..][..hd], value, (score - sum).exp());
        }
        lse.row_mut(row)[head] = sum;
    }
    [out, lse]
}

pub(super) fn backward(
    call: AttentionCall<'_>,
    kv: &KvPool,
    qkv: &Matrix,
    [out, lse]: [&Matrix; 2],
    d_out: &Matrix,
) -> Matrix {
    let (shape, hd) = (call.shape, call.shape.head_dim);
    let mut d = Matrix::zeros(qkv.rows(), qkv.width());
    for Query { span, row, head, keys } in queries(&call) {
        let own = head / (shape.heads / shape.kv_heads);
        let (at_q, at_k) = (head * hd, shape.q_width() + own * hd);
        let at_v = at_k + shape.kv_width();
        let q = qkv.row(row)[at_q..][..hd].to_vec();
        let d_head = &d_out.row(row)[at_q..][..hd];
        let delta = dot(d_head, &out.row(row)[at_q..][..hd]);
        for key in keys {
            let (k, v) = (kv.get(0, call.layer, span, key, own), kv.get(1, call.layer, span, key, own));
            let p = (dot(&q, k) * shape.scale - lse.row(row)[head]).exp();
            let ds = p * (dot(d_head, v) - delta) * shape.scale;
            let key_row = span.rows.start + key - span.start;
            add_scaled(&mut d.row_mut(row)[at_q..][..hd], k, ds);
            add_scaled(&mut d.row_mut(key_row)[at_k..][..hd], &q, ds);
            add_scaled(&mut d.row_mut(key_row)[at_v..][..hd], d_head, p);
        }
    }
    d
}

/// Rotates the heads of q and k, back with `sign` -1.
fn rotate_all(r: &Rotation<'_, Reference>, x: &mut Matrix, sign: f32) {
    let (q, kv) = (r.shape.q_width(), r.shape.kv_width());
    rotate_rows(r.shape, r.query_rope.unwrap_or(r.rope), r.positions, x, 0..q, sign);
    rotate_rows(r.shape, r.rope, r.positions, x, q..q + kv, sign);
}

/// Rotates the heads in some columns.
fn rotate_rows(
    shape: &AttentionShape,
    rope: &Rope,
    positions: &[u32],
    x: &mut Matrix,
    columns: std::ops::Range<usize>,
    sign: f32,
) {
    for (row, position) in positions.iter().enumerate() {
        let table = &rope.table[*position as usize * rope.half..][..rope.half];
        for head in x.row_mut(row)[columns.clone()].chunks_exact_mut(shape.head_dim) {
            for (i, (cos, sin)) in table.iter().enumerate() {
                let (a, b, sin) = (head[i], head[i + rope.half], sign * sin);
                head[i] = a * cos - b * sin;
                head[i + rope.half] = b * cos + a * sin;
            }
        }
    }
}

/// What is normalised together in q, then in k: its columns, norm and the norm's index.
fn normed_heads<'a>(
    r: &Rotation<'a, Reference>,
    norms: &[Norm<'a, Reference>; 2],
) -> Vec<(std::ops::Range<usize>, Norm<'a, Reference>, usize)> {
    let (q, kv, hd) = (r.shape.q_width(), r.shape.kv_width(), r.shape.head_dim);
    if r.whole_norms {
        return vec![(0..q, norms[0], 0), (q..q + kv, norms[1], 1)];
    }
    let heads = (0..r.shape.heads + r.shape.kv_heads).map(|head| (head, usize::from(head >= r.shape.heads)));
    heads.map(|(head, which)| (head * hd..(head + 1) * hd, norms[which], which)).collect()
}

pub(super) fn rotate(r: &Rotation<'_, Reference>, qkv: &mut Matrix, keep: bool) -> Option<Matrix> {
    let before = (keep && r.norms.is_some()).then(|| qkv.clone());
    if let Some(norms) = &r.norms {
        for row in 0..qkv.rows() {
            for (columns, norm, _) in normed_heads(r, norms) {
                let head = &mut qkv.row_mut(row)[columns];
                let normed = norm_row(norm, head);
                head.copy_from_slice(&normed);
            }
        }
    }
    rotate_all(r, qkv, 1.0);
    before
}

pub(super) fn rotate_backward(
    r: &Rotation<'_, Reference>,
    before: Option<&Matrix>,
    d: &mut Matrix,
    mut dw: Option<(&mut HostParams, [usize; 2])>,
) {
    rotate_all(r, d, -1.0);
    let (Some(norms), Some(before)) = (&r.norms, before) else { return };
    for row in 0..d.rows() {
        for (columns, norm, which) in normed_heads(r, norms) {
            let (x, dy) = (&before.row(row)[columns.clone()], d.row(row)[columns.clone()].to_vec());
            let dw = dw.as_mut().map(|(params, index)| &mut params[index[which]][..]);
            let dx = norm_row_backward(norm, x, &dy, dw);
            d.row_mut(row)[columns].copy_from_slice(&dx);
        }
    }
}
