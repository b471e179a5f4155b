//! Multi-head latent attention between its projections and attention, element by element.

use std::ops::Range;

use super::{Matrix, Reference, add_scaled};
use crate::{LatentHeads, LatentOps, LatentRotation, Rows};

/// A source element that goes into attention's queries, keys and values: its column in the source, its column in the
/// row, and its factor.
type Term = (usize, usize, f32);

/// Source of an element of attention's rows: queries, keys and values, or the keys' common part.
const SOURCES: [usize; 3] = [0, 1, 2];

/// The linear map from a source to attention's row at a position, as its terms.
fn terms(rotation: &LatentRotation<'_, Reference>, source: usize, position: u32) -> Vec<Term> {
    let h = rotation.heads;
    let half = h.rope / 2;
    let angles = &rotation.rope.table[position as usize * half..][..half];
    let mut terms = Vec::new();
    // Rotated elements from column `from` on to column `to` on.
    let rotated = |terms: &mut Vec<Term>, from: usize, to: usize| {
        for (i, (cos, sin)) in angles.iter().enumerate() {
            let (a, b) = if h.interleaved { (2 * i, 2 * i + 1) } else { (i, i + half) };
            terms.extend([(from + a, to + i, *cos), (from + b, to + i, -sin)]);
            terms.extend([(from + b, to + i + half, *cos), (from + a, to + i + half, *sin)]);
        }
    };
    for head in 0..h.heads {
        let [query, key, value] = SOURCES.map(|part| (part * h.heads + head) * h.width);
        let (of_query, of_kv) = (head * (h.nope + h.rope), head * (h.nope + h.value));
        match source {
            0 => {
                terms.extend((0..h.nope).map(|i| (of_query + i, query + i, 1.0)));
                rotated(&mut terms, of_query + h.nope, query + h.nope);
            }
            1 => {
                terms.extend((0..h.nope).map(|i| (of_kv + i, key + i, 1.0)));
                terms.extend((0..h.value).map(|i| (of_kv + h.nope + i, value + i, 1.0)));
            }
            _ => rotated(&mut terms, 0, key + h.nope),
        }
    }
    terms
}

impl LatentOps<Self> for Reference {
    fn add_rows(_: &Self, from: &Matrix, to: &mut Matrix) {
        add_scaled(&mut to.data, &from.data, 1.0);
    }

    fn columns(_: &Self, from: &Matrix, columns: Range<usize>) -> Matrix {
        let rows = (0..from.rows()).flat_map(|row| from.row(row)[columns.clone()].to_vec());
        Matrix::new(rows.collect(), columns.len())
    }

    fn join_columns(_: &Self, left: &Matrix, right: &Matrix) -> Matrix {
        let rows = (0..left.rows()).flat_map(|row| [left.row(row), right.row(row)].concat());
        Matrix::new(rows.collect(), left.width + right.width)
    }

    fn join_heads(
        backend: &Self,
        rotation: &LatentRotation<'_, Self>,
        q: &Matrix,
        kv: &Matrix,
        down: &Matrix,
    ) -> Matrix {
        let h = rotation.heads;
        let common = Self::columns(backend, down, down.width - h.rope..down.width);
        let mut out = Matrix::zeros(q.rows(), 3 * h.heads * h.width);
        for (row, position) in rotation.positions.iter().enumerate() {
            for (source, from) in SOURCES.into_iter().zip([q, kv, &common]) {
                for (column, to, by) in terms(rotation, source, *position) {
                    out.row_mut(row)[to] += by * from.row(row)[column];
                }
            }
        }
        out
    }

    fn split_heads(_: &Self, rotation: &LatentRotation<'_, Self>, d_qkv: &Matrix) -> [Matrix; 3] {
        let h = rotation.heads;
        let mut all = [h.queries(), h.keys_and_values(), h.rope].map(|width| Matrix::zeros(d_qkv.rows(), width));
        for (row, position) in rotation.positions.iter().enumerate() {
            for (source, d) in SOURCES.into_iter().zip(&mut all) {
                for (column, to, by) in terms(rotation, source, *position) {
                    d.row_mut(row)[column] += by * d_qkv.row(row)[to];
                }
            }
        }
        all
    }

    fn head_values(_: &Self, h: LatentHeads, attended: &Matrix) -> Matrix {
        let of = |row: usize| attended.row(row).chunks_exact(h.width).flat_map(|head| head[..h.value].to_vec());
        Matrix::new((0..attended.rows()).flat_map(of).collect(), h.values())
    }

    fn pad_values(_: &Self, h: LatentHeads, d_values: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(d_values.rows(), h.heads * h.width);
        for row in 0..d_values.rows() {
            let heads = out.row_mut(row).chunks_exact_mut(h.width).zip(d_values.row(row).chunks_exact(h.value));
            heads.for_each(|(to, from)| to[..h.value].copy_from_slice(from));
        }
        out
    }
}
