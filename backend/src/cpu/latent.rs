//! Multi-head latent attention between its projections and attention.

use std::ops::Range;

use super::parallel::for_rows;
use super::rows::HostRows;
use super::{Cpu, elementwise};
use crate::{LatentHeads, LatentOps, LatentRotation, Rows};

/// Cosines and sines of a position.
#[derive(Clone, Copy)]
struct Angles<'a> {
    cos: &'a [f32],
    sin: &'a [f32],
}

impl<'a> Angles<'a> {
    fn of(rotation: &LatentRotation<'a, Cpu>, row: usize) -> Self {
        let (cos, sin) = rotation.rope.angles(rotation.positions[row]);
        Self { cos, sin }
    }

    fn parts(self) -> [&'a [f32]; 2] {
        [self.cos, self.sin]
    }
}

/// Indices of the elements of pair `i` of `half`.
fn pair(interleaved: bool, half: usize, i: usize) -> (usize, usize) {
    if interleaved { (2 * i, 2 * i + 1) } else { (i, i + half) }
}

/// Rotates `from` to `to` by angles of these cosines and sines, first elements of pairs before second ones.
pub(super) fn rotate(interleaved: bool, [cos, sin]: [&[f32]; 2], from: &[f32], to: &mut [f32]) {
    let half = cos.len();
    let (low, high) = to.split_at_mut(half);
    for (i, ((low, high), (cos, sin))) in low.iter_mut().zip(high).zip(cos.iter().zip(sin)).enumerate() {
        let (first, second) = pair(interleaved, half, i);
        let (a, b) = (from[first], from[second]);
        *low = a * cos - b * sin;
        *high = b * cos + a * sin;
    }
}

/// The gradient with respect to `from` of [`rotate`], given that with respect to `to`.
fn rotate_back(interleaved: bool, Angles { cos, sin }: Angles<'_>, d_to: &[f32], d_from: &mut [f32]) {
    let half = cos.len();
    let (low, high) = d_to.split_at(half);
    for (i, ((low, high), (cos, sin))) in low.iter().zip(high).zip(cos.iter().zip(sin)).enumerate() {
        let (first, second) = pair(interleaved, half, i);
        d_from[first] = low * cos + high * sin;
        d_from[second] = high * cos - low * sin;
    }
}

/// A row of queries, keys and values for attention.
fn join_row(h: &LatentHeads, angles: Angles<'_>, [q, kv, common]: [&[f32]; 3], row: &mut [f32]) {
    let (rotated, used) = (h.nope..h.nope + h.rope, h.nope + h.rope);
    let (queries, rest) = row.split_at_mut(h.heads * h.width);
    let (keys, values) = rest.split_at_mut(h.heads * h.width);
    for (to, q) in queries.chunks_exact_mut(h.width).zip(q.chunks_exact(used)) {
        to[..h.nope].copy_from_slice(&q[..h.nope]);
        rotate(h.interleaved, angles.parts(), &q[h.nope..], &mut to[rotated.clone()]);
        to[used..].fill(0.0);
    }
    let heads = keys.chunks_exact_mut(h.width).zip(values.chunks_exact_mut(h.width));
    for ((key, value), kv) in heads.zip(kv.chunks_exact(h.nope + h.value)) {
        key[..h.nope].copy_from_slice(&kv[..h.nope]);
        rotate(h.interleaved, angles.parts(), common, &mut key[rotated.clone()]);
        key[used..].fill(0.0);
        value[..h.value].copy_from_slice(&kv[h.nope..]);
        value[h.value..].fill(0.0);
    }
}

impl LatentOps<Self> for Cpu {
    fn add_rows(cpu: &Self, from: &HostRows, to: &mut HostRows) {
        assert!(from.width() == to.width(), "row widths differ");
        elementwise::add(cpu, to, from);
    }

    fn columns(cpu: &Self, from: &HostRows, columns: Range<usize>) -> HostRows {
        let mut out = HostRows::alloc(cpu, from.rows(), columns.len());
        for_rows(cpu, &mut out, columns.len(), |row, out| {
            out.copy_from_slice(&from[row * from.width()..][columns.clone()]);
        });
        out
    }

    fn join_columns(cpu: &Self, left: &HostRows, right: &HostRows) -> HostRows {
        let [a, b] = [left, right].map(Rows::width);
        let mut out = HostRows::alloc(cpu, left.rows(), a + b);
        for_rows(cpu, &mut out, a + b, |row, out| {
            out[..a].copy_from_slice(&left[row * a..][..a]);
            out[a..].copy_from_slice(&right[row * b..][..b]);
        });
        out
    }

    fn join_heads(
        cpu: &Self,
        rotation: &LatentRotation<'_, Self>,
        q: &HostRows,
        kv: &HostRows,
        down: &HostRows,
    ) -> HostRows {
        let (h, width) = (&rotation.heads, 3 * rotation.heads.heads * rotation.heads.width);
        let mut out = HostRows::alloc(cpu, q.rows(), width);
        for_rows(cpu, &mut out, width, |row, out| {
            let [q, kv, down] = [q, kv, down].map(|x| &x[row * x.width()..(row + 1) * x.width()]);
            join_row(h, Angles::of(rotation, row), [q, kv, &down[down.len() - h.rope..]], out);
        });
        out
    }

    fn split_heads(cpu: &Self, rotation: &LatentRotation<'_, Self>, d_qkv: &HostRows) -> [HostRows; 3] {
        let h = &rotation.heads;
        let (part, used) = (h.heads * h.width, h.nope + h.rope);
        let angles = |row: usize| Angles::of(rotation, row);
        // Queries, keys and values of a row.
        let parts = |row: usize| {
            let (queries, rest) = d_qkv[row * 3 * part..(row + 1) * 3 * part].split_at(part);
            let (keys, values) = rest.split_at(part);
            [queries, keys, values]
        };
        let [mut d_q, mut d_kv, mut d_common] =
            [h.queries(), h.keys_and_values(), h.rope].map(|width| HostRows::alloc(cpu, d_qkv.rows(), width));
        for_rows(cpu, &mut d_q, h.queries(), |row, d| {
            let [queries, ..] = parts(row);
            for (d, from) in d.chunks_exact_mut(used).zip(queries.chunks_exact(h.width)) {
                d[..h.nope].copy_from_slice(&from[..h.nope]);
                rotate_back(h.interleaved, angles(row), &from[h.nope..used], &mut d[h.nope..]);
            }
        });
        for_rows(cpu, &mut d_kv, h.keys_and_values(), |row, d| {
            let [_, keys, values] = parts(row);
            let heads = keys.chunks_exact(h.width).zip(values.chunks_exact(h.width));
            for (d, (key, value)) in d.chunks_exact_mut(h.nope + h.value).zip(heads) {
                d[..h.nope].copy_from_slice(&key[..h.nope]);
                d[h.nope..].copy_from_slice(&value[..h.value]);
            }
        });
        for_rows(cpu, &mut d_common, h.rope, |row, d| {
            let [_, keys, _] = parts(row);
            let mut sum = vec![0.0; h.rope];
            for key in keys.chunks_exact(h.width) {
                sum.iter_mut().zip(&key[h.nope..used]).for_each(|(sum, d)| *sum += d);
            }
            rotate_back(h.interleaved, angles(row), &sum, d);
        });
        [d_q, d_kv, d_common]
    }

    fn head_values(cpu: &Self, h: LatentHeads, attended: &HostRows) -> HostRows {
        let mut out = HostRows::alloc(cpu, attended.rows(), h.values());
        for_rows(cpu, &mut out, h.values(), |row, out| {
            let from = attended[row * attended.width()..].chunks_exact(h.width);
            for (to, from) in out.chunks_exact_mut(h.value).zip(from) {
                to.copy_from_slice(&from[..h.value]);
            }
        });
        out
    }

    fn pad_values(cpu: &Self, h: LatentHeads, d_values: &HostRows) -> HostRows {
        let mut out = HostRows::alloc(cpu, d_values.rows(), h.heads * h.width);
        for_rows(cpu, &mut out, h.heads * h.width, |row, out| {
            let from = d_values[row * h.values()..].chunks_exact(h.value);
            for (to, from) in out.chunks_exact_mut(h.width).zip(from) {
                to[..h.value].copy_from_slice(from);
                to[h.value..].fill(0.0);
            }
        });
        out
    }
}
