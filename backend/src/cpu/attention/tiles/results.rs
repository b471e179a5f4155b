//! Gradients that the backward pass writes.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::inputs::group;
use super::backward::Pass;
use super::vector::{load_floats, prefetch_to_write, store_some, transpose_floats};
use super::{QUERIES, padded};

impl Pass<'_> {
    /// Prefetches, for rows of the sequence, what the next query head of the group reads, and where this one's gradient goes,
    /// with the last one's also those of keys and values.
    pub(super) fn prefetch(&self, rows: Range<usize>, member: usize) {
        let shape = self.call.shape;
        let (hd, group) = (shape.head_dim, group(shape));
        let head = self.kv_head * group + member;
        let write = |at: usize| {
            let first = (self.span.rows.start + rows.start) * shape.qkv_width() + at;
            prefetch_to_write(self.to.ptr().wrapping_add(first), shape.qkv_width(), rows.len(), hd);
        };
        write(head * hd);
        if member + 1 < group {
            self.of_head(head + 1).iter().for_each(|next| next.part(rows.start, rows.len()).prefetch());
        } else {
            let keys = shape.q_width() + self.kv_head * hd;
            write(keys);
            write(keys + shape.kv_width());
        }
    }

    /// A row's elements of a head from column `at` on.
    ///
    /// # Safety
    /// Nobody else accesses them.
    #[expect(clippy::mut_from_ref, reason = "tasks write elements of their own of one slice")]
    unsafe fn row(&self, row: usize, at: usize, len: usize) -> &mut [f32] {
        let at = (self.span.rows.start + row) * self.call.shape.qkv_width() + at;
        assert!(at + len <= self.len);
        // SAFETY: in bounds, and by the caller nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.to.ptr().add(at), len) }
    }

    /// Writes the gradients of a query head from sums without the scale.
    ///
    /// # Safety
    /// The processor has the features; nobody else accesses the elements.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn store_queries(&self, tiles: usize, head: usize, dq: &[f32]) {
        let (shape, rows) = (self.call.shape, self.span.rows.len());
        let (hd, scale) = (shape.head_dim, _mm512_set1_ps(shape.scale));
        for (tile, dq) in dq.chunks_exact(padded(hd) * QUERIES).enumerate().take(tiles) {
            for c in 0..2 {
                let first = tile * QUERIES + 16 * c;
                for d in (0..hd).step_by(16) {
                    let mut columns = [_mm512_setzero_ps(); 16];
                    for (i, column) in columns.iter_mut().enumerate() {
                        *column = _mm512_mul_ps(load_floats(&dq[(d + i) * QUERIES + 16 * c..]), scale);
                    }
                    let len = (hd - d).min(16);
                    for (row, values) in (first..rows).zip(transpose_floats(columns)) {
                        // SAFETY: as the caller ensures.
                        store_some(unsafe { self.row(row, head * hd + d, len) }, len, values);
                    }
                }
            }
        }
    }

    /// Writes the gradients of keys, from sums without the scale, and of values.
    ///
    /// # Safety
    /// As [`Pass::store_queries`].
    pub(super) unsafe fn store_keys(&self, dk: &[f32], dv: &[f32]) {
        let shape = self.call.shape;
        let (hd, wide) = (shape.head_dim, padded(shape.head_dim));
        let at = shape.q_width() + self.kv_head * hd;
        let sums = dk.chunks_exact(wide).zip(dv.chunks_exact(wide)).take(self.span.rows.len());
        for (row, (dk, dv)) in sums.enumerate() {
            // SAFETY: as the caller ensures; the two are apart.
            let (to_k, to_v) = unsafe { (self.row(row, at, hd), self.row(row, at + shape.kv_width(), hd)) };
            to_k.iter_mut().zip(dk).for_each(|(to, dk)| *to = dk * shape.scale);
            to_v.copy_from_slice(&dv[..hd]);
        }
    }
}
