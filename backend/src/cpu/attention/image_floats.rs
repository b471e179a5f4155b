//! Attention within images in vectors of floats.

use super::super::Cpu;
use super::super::buffer::Buffer;
use super::super::parallel::par_chunks;
use super::forward::{KeyFloats, attention};
use super::image::ImageAttention;
use super::inputs::Reach;
use crate::{AttentionShape, BlockId, KV_BLOCK as BLOCK};

/// Keys and values of all heads, block by block.
struct ImageFloats {
    heads: usize,
    head_dim: usize,
    values: Buffer<f32>,
}

impl ImageFloats {
    fn pack(cpu: &Cpu, of: &ImageAttention<'_>) -> Self {
        let AttentionShape { heads, head_dim, .. } = of.shape;
        let (width, head_len) = (of.shape.qkv_width(), 2 * head_dim * BLOCK);
        let mut values = cpu.buffer(of.blocks.len() * heads * head_len);
        par_chunks(&cpu.pool, &mut values, heads * head_len, |block, to| {
            let rows = &of.blocks[block];
            if rows.count < BLOCK {
                to.fill(0.0);
            }
            for (head, to) in to.chunks_exact_mut(head_len).enumerate() {
                let (keys, values) = to.split_at_mut(head_dim * BLOCK);
                for slot in 0..rows.count {
                    let part = |part: usize| {
                        let at = (rows.first + slot) * width + part * of.shape.q_width() + head * head_dim;
                        &of.qkv[at..at + head_dim]
                    };
                    keys[slot..].iter_mut().step_by(BLOCK).zip(part(1)).for_each(|(to, key)| *to = *key);
                    values[slot * head_dim..][..head_dim].copy_from_slice(part(2));
                }
            }
        });
        Self { heads, head_dim, values }
    }
}

impl KeyFloats for ImageFloats {
    fn tile(&self, _: usize, head: usize, BlockId(id): BlockId) -> (&[f32], &[f32]) {
        let len = self.head_dim * BLOCK;
        self.values[(id as usize * self.heads + head) * 2 * len..][..2 * len].split_at(len)
    }
}

/// Computes [`attention_within`](super::attention_within) in vectors of floats.
pub(super) fn attention_within(cpu: &Cpu, of: &ImageAttention<'_>, out: &mut [f32], lse: &mut [f32]) {
    attention(cpu, of.call(), Reach::Whole, &ImageFloats::pack(cpu, of), of.qkv, out, lse);
}
