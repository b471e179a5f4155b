//! A tower's pass over several images.

use std::ops::Range;

use trainyard_images::Patches;

use super::embedding::ImageEmbedding;
use super::geometry::{position_mix, rotations};
use super::weights::{Tower, TowerBlock};
use crate::backend::{AttentionShape, Backend, Gelu, IndexKeys, Rotation, Rows, VisionOps};
use crate::config::PATCHES_OF_PART;

impl<B: Backend> Tower<B> {
    /// Embeddings of images, in their order. An image's bits do not depend on the others.
    ///
    /// Images must be preprocessed by the settings of the tower's model.
    pub(crate) fn embed(&self, backend: &B, images: &[&Patches]) -> Vec<ImageEmbedding<B>> {
        let mut last = 0;
        let spans: Vec<Range<usize>> = images
            .iter()
            .map(|image| {
                last += image.layout().patches();
                last - image.layout().patches()..last
            })
            .collect();
        let mut x = backend.alloc(last, self.config.hidden);
        for (image, span) in images.iter().zip(&spans) {
            self.embed_patches(backend, image, span.start, &mut x);
        }
        let half = self.config.hidden / self.config.heads / 2;
        let table = images.iter().flat_map(|image| rotations(&self.config, image.layout())).collect();
        let rope = backend.rope(half, table);
        let positions: Vec<u32> = (0..last as u32).collect();
        let count = self.config.merged();
        let mut features = Vec::with_capacity(self.deepstack.len());
        for (at, block) in self.blocks.iter().enumerate() {
            x = self.block(backend, block, x, &rope, &positions, &spans);
            if let Some(k) = self.config.deepstack.iter().position(|own| *own == at) {
                features.push(self.deepstack[k].apply(backend, &x, count));
            }
        }
        if let Some(norm) = &self.final_norm {
            x = norm.apply(backend, &x);
        }
        let merged = self.merger.apply(backend, &x, count);
        drop(x);
        let of = |rows: &B::Rows, span: &Range<usize>| {
            let tokens: Vec<usize> = (span.start / count..span.end / count).collect();
            backend.gather(rows, &tokens)
        };
        let embedding = |span: &Range<usize>| ImageEmbedding {
            rows: of(&merged, span),
            deepstack: features.iter().map(|feature| of(feature, span)).collect(),
        };
        spans.iter().map(embedding).collect()
    }

    /// Writes an image's projected patches with their positions to the rows of `x` from `first` on, the patches of a token one
    /// after the other.
    fn embed_patches(&self, backend: &B, image: &Patches, first: usize, x: &mut B::Rows) {
        let (layout, dim) = (image.layout(), image.layout().patch_dim());
        for start in (0..layout.patches()).step_by(PATCHES_OF_PART) {
            let part = start..layout.patches().min(start + PATCHES_OF_PART);
            let mut values = vec![0.0; part.len() * dim];
            image.fill(part.start, &mut values);
            let values = backend.lhs(&B::Family::upload_rows(backend, &values, dim));
            let mix = position_mix(&self.config, layout, part.clone());
            let positions = B::Family::mix_rows(backend, &self.positions, &mix);
            let embedded = self.patch_embed.apply(backend, part.len(), &values, Some(&positions));
            let rows: Vec<usize> = part.map(|patch| first + layout.index_by_token(patch)).collect();
            backend.scatter(&embedded, &rows, x);
        }
    }

    fn block(
        &self,
        backend: &B,
        block: &TowerBlock<B>,
        x: B::Rows,
        rope: &B::Rope,
        positions: &[u32],
        images: &[Range<usize>],
    ) -> B::Rows {
        let heads = self.config.heads;
        let head_dim = self.config.hidden / heads;
        let shape = AttentionShape { layers: 1, heads, kv_heads: heads, head_dim, scale: 1.0, index: IndexKeys::NONE };
        let mut qkv = block.qkv.apply(backend, x.rows(), &block.norms[0].apply_lhs(backend, &x), None);
        let rotation = Rotation { shape: &shape, norms: None, whole_norms: false, rope, query_rope: None, positions };
        backend.rotate(&rotation, &mut qkv, false);
        let attended = B::Family::attend_all(backend, heads, images, &qkv);
        drop(qkv);
        let x = block.proj.apply(backend, x.rows(), &backend.lhs(&attended), Some(&x));
        let inner = block.mlp[0].apply_gelu(backend, Gelu::Tanh, &block.norms[1].apply_lhs(backend, &x));
        block.mlp[1].apply(backend, x.rows(), &inner, Some(&x))
    }
}
