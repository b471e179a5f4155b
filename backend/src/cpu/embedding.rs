//! Embedding lookups and their gradients.

use std::collections::BTreeMap;

use super::Cpu;
use super::elementwise::scale;
use super::parallel::for_rows;
use super::rows::HostRows;
use crate::host::HostParams;
use crate::{EmbeddingGradient, Rows};

/// Gradients by token, tokens in order. Only rows of tokens that occur take memory.
pub(super) type EmbeddingSums = BTreeMap<u32, Vec<f32>>;

/// Rows that `lookup` writes, given the token, times `scale_by`.
pub(super) fn embed(
    cpu: &Cpu,
    tokens: &[u32],
    width: usize,
    scale_by: f32,
    lookup: impl Fn(usize, &mut [f32]) + Sync,
) -> HostRows {
    let mut x = HostRows::alloc(cpu, tokens.len(), width);
    for_rows(cpu, &mut x, width, |row, out| {
        lookup(tokens[row] as usize, out);
        if scale_by != 1.0 {
            scale(out, scale_by);
        }
    });
    x
}

/// Adds `scale_by · dx` to the rows of the tokens, in order.
pub(super) fn backward(tokens: &[u32], dx: &HostRows, scale_by: f32, into: EmbeddingGradient<'_, Cpu>) {
    let width = dx.width();
    let rows = tokens.iter().zip(dx.chunks_exact(width));
    match into {
        EmbeddingGradient::Param(params, index) => {
            for (token, dx) in rows {
                add_scaled(&mut params[index][*token as usize * width..][..width], dx, scale_by);
            }
        }
        EmbeddingGradient::Sums(sums) => {
            for (token, dx) in rows {
                add_scaled(sums.entry(*token).or_insert_with(|| vec![0.0; width]), dx, scale_by);
            }
        }
    }
}

/// Adds sums to the rows of their tokens in parameter `index`.
pub(super) fn add_sums(sums: EmbeddingSums, params: &mut HostParams, index: usize) {
    for (token, row) in sums {
        add_scaled(&mut params[index][token as usize * row.len()..], &row, 1.0);
    }
}

fn add_scaled(to: &mut [f32], from: &[f32], scale: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}
