//! A tower's weights in the form that its backend reads.

use crate::backend::{Backend, Gelu, LayerNorm, LinearCall, MatrixRole, Rows, Source, VisionOps};
use crate::config::{LoadError, MergerNames, PatchRotation, TensorSource, VisionConfig};

/// A linear layer with a bias.
pub(super) struct TowerLinear<B: Backend> {
    weight: B::Matrix,
    bias: B::Vector,
    outputs: usize,
}

impl<B: Backend> TowerLinear<B> {
    /// The layer's output for rows, added to `residual` where it is given.
    pub(super) fn apply(&self, backend: &B, rows: usize, x: &B::Lhs, residual: Option<&B::Rows>) -> B::Rows {
        let mut out = backend.alloc(rows, self.outputs);
        let call = LinearCall { weight: &self.weight, bias: Some(&self.bias), lora: &[] };
        backend.linear(&call, x, residual, &mut out);
        out
    }

    /// GELU of the layer's output for rows, as the input of a further layer.
    pub(super) fn apply_gelu(&self, backend: &B, kind: Gelu, x: &B::Lhs) -> B::Lhs {
        let call = LinearCall { weight: &self.weight, bias: Some(&self.bias), lora: &[] };
        B::Family::linear_gelu(backend, &call, kind, x)
    }
}

/// A LayerNorm with a bias.
pub(super) struct TowerNorm<B: Backend> {
    weight: B::Vector,
    bias: B::Vector,
    eps: f32,
}

impl<B: Backend> TowerNorm<B> {
    pub(super) fn apply(&self, backend: &B, x: &B::Rows) -> B::Rows {
        B::Family::layer_norm(backend, self.norm(), x)
    }

    /// The norm of rows, as the input of a layer.
    pub(super) fn apply_lhs(&self, backend: &B, x: &B::Rows) -> B::Lhs {
        B::Family::layer_norm_lhs(backend, self.norm(), x)
    }

    fn norm(&self) -> LayerNorm<'_, B> {
        LayerNorm { weight: &self.weight, bias: &self.bias, eps: self.eps }
    }
}

pub(super) struct TowerBlock<B: Backend> {
    pub(super) norms: [TowerNorm<B>; 2],
    pub(super) qkv: TowerLinear<B>,
    pub(super) proj: TowerLinear<B>,
    pub(super) mlp: [TowerLinear<B>; 2],
}

/// Makes one embedding of the patches of a token.
pub(super) struct Merger<B: Backend> {
    norm: TowerNorm<B>,
    mlp: [TowerLinear<B>; 2],
    /// Whether the norm is over the joined patches; else over each patch.
    norms_joined: bool,
}

impl<B: Backend> Merger<B> {
    /// Embeddings of tokens from rows of patches, `count` of which make a token.
    pub(super) fn apply(&self, backend: &B, x: &B::Rows, count: usize) -> B::Rows {
        let joined = match self.norms_joined {
            true => self.norm.apply(backend, &B::Family::join_rows(backend, backend.copy(x), count)),
            false => B::Family::join_rows(backend, self.norm.apply(backend, x), count),
        };
        let [first, second] = &self.mlp;
        let inner = first.apply_gelu(backend, Gelu::Erf, &backend.lhs(&joined));
        second.apply(backend, joined.rows(), &inner, None)
    }
}

/// A frozen vision tower.
pub(crate) struct Tower<B: Backend> {
    pub(super) config: VisionConfig,
    pub(super) patch_embed: TowerLinear<B>,
    /// The learned grid of positions, `[rows · columns, hidden]`.
    pub(super) positions: B::Rows,
    pub(super) blocks: Vec<TowerBlock<B>>,
    /// The norm after the last block.
    pub(super) final_norm: Option<TowerNorm<B>>,
    pub(super) merger: Merger<B>,
    pub(super) deepstack: Vec<Merger<B>>,
    bytes: usize,
}

impl<B: Backend> Tower<B> {
    /// Packs the weights that `tensors` has; `seen` gets the elements of each.
    ///
    /// # Errors
    /// Fails if a tensor is missing, cannot be read, or is not finite.
    pub(crate) fn load(
        backend: &B,
        config: &VisionConfig,
        tensors: &dyn TensorSource,
        seen: &mut dyn FnMut(&str, &[f32]),
    ) -> Result<Self, LoadError> {
        let names = config.names;
        let mut loader = Loader { backend, config, tensors, seen, bytes: 0 };
        let patch_embed = loader.linear(names.patch_embed, config.patch_dim)?;
        let grid = loader.read(names.positions)?;
        let positions = B::Family::upload_rows(backend, &grid, config.hidden);
        loader.bytes += size_of_val(&grid[..]);
        let blocks = (0..config.depth).map(|block| loader.block(block)).collect::<Result<_, _>>()?;
        let final_norm = names.final_norm.map(|name| loader.norm(name, config.eps)).transpose()?;
        let merger = loader.merger(None)?;
        let deepstack = 0..config.deepstack.len();
        let deepstack = deepstack.map(|k| loader.merger(Some(k))).collect::<Result<_, _>>()?;
        let bytes = loader.bytes;
        Ok(Self { config: config.clone(), patch_embed, positions, blocks, final_norm, merger, deepstack, bytes })
    }

    /// Bytes of its weights.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

struct Loader<'a, B: Backend> {
    backend: &'a B,
    config: &'a VisionConfig,
    tensors: &'a dyn TensorSource,
    seen: &'a mut dyn FnMut(&str, &[f32]),
    bytes: usize,
}

impl<B: Backend> Loader<'_, B> {
    fn read(&mut self, name: &str) -> Result<Vec<f32>, LoadError> {
        let values = self.tensors.read(name)?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(LoadError::Unsupported(format!("tensor {name} is not finite")));
        }
        (self.seen)(name, &values);
        Ok(values)
    }

    fn vector(&mut self, values: &[f32]) -> B::Vector {
        self.bytes += size_of_val(values);
        self.backend.vector(&[Source::Host(values)], 0.0)
    }

    fn linear(&mut self, module: &str, inputs: usize) -> Result<TowerLinear<B>, LoadError> {
        self.arranged(module, inputs, |_, values| values)
    }

    /// A linear layer whose weight and bias are arranged by `arrange`, given the number of elements of a row.
    fn arranged(
        &mut self,
        module: &str,
        inputs: usize,
        arrange: impl Fn(usize, Vec<f32>) -> Vec<f32>,
    ) -> Result<TowerLinear<B>, LoadError> {
        let values = arrange(inputs, self.read(&format!("{module}.weight"))?);
        let weight = self.backend.pack(&[Source::Host(&values)], inputs, MatrixRole::Base);
        self.bytes += self.backend.matrix_bytes(&weight);
        let outputs = values.len() / inputs;
        drop(values);
        let bias = arrange(1, self.read(&format!("{module}.bias"))?);
        Ok(TowerLinear { weight, bias: self.vector(&bias), outputs })
    }

    fn norm(&mut self, module: &str, eps: f32) -> Result<TowerNorm<B>, LoadError> {
        let [weight, bias] = ["weight", "bias"].map(|kind| self.read(&format!("{module}.{kind}")));
        Ok(TowerNorm { weight: self.vector(&weight?), bias: self.vector(&bias?), eps })
    }

    fn block(&mut self, block: usize) -> Result<TowerBlock<B>, LoadError> {
        let VisionConfig { names, hidden, width, heads, eps, .. } = *self.config;
        let of = |module: &str| names.in_block(block, module);
        let rotation = self.config.rotation;
        let arrange = |row: usize, values: Vec<f32>| match rotation {
            PatchRotation::Halves => values,
            PatchRotation::Neighbours => in_halves(&values, heads, hidden / heads, row),
        };
        let [first, second] = names.block.mlp;
        let [attention_norm, mlp_norm] = names.block.norms;
        Ok(TowerBlock {
            qkv: self.arranged(&of(names.block.qkv), hidden, arrange)?,
            proj: self.linear(&of(names.block.proj), hidden)?,
            mlp: [self.linear(&of(first), hidden)?, self.linear(&of(second), width)?],
            norms: [self.norm(&of(attention_norm), eps)?, self.norm(&of(mlp_norm), eps)?],
        })
    }

    /// The `k`-th merger of features, whose norm is over joined patches, or the tower's own.
    fn merger(&mut self, features: Option<usize>) -> Result<Merger<B>, LoadError> {
        let (names, joined) = (self.config.names, self.config.hidden * self.config.merged());
        let MergerNames { norm, mlp: [first, second] } = names.merger_modules;
        let of = |module: &str| names.in_merger(features, module);
        let norm = self.norm(&of(norm), self.config.merger_eps)?;
        let mlp = [self.linear(&of(first), joined)?, self.linear(&of(second), joined)?];
        Ok(Merger { norm, mlp, norms_joined: features.is_some() })
    }
}

/// Rows of the projection to queries, keys and values in the order of [`PatchRotation::Halves`], from that of
/// [`PatchRotation::Neighbours`]: of each head's queries and keys the even rows, then the odd ones. Scores stay what they are, since
/// queries and keys change alike. A row has `row` elements.
fn in_halves(values: &[f32], heads: usize, head_dim: usize, row: usize) -> Vec<f32> {
    let head = head_dim * row;
    let mut arranged = Vec::with_capacity(values.len());
    for (at, rows) in values.chunks_exact(head).enumerate() {
        if at >= 2 * heads {
            arranged.extend_from_slice(rows);
            continue;
        }
        for first in [0, 1] {
            rows.chunks_exact(row).skip(first).step_by(2).for_each(|row| arranged.extend_from_slice(row));
        }
    }
    arranged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_queries_and_keys_are_taken_apart() {
        // Queries, keys and values of two heads, with four rows of two elements each.
        let row = |number: usize| [number as f32, -(number as f32)];
        let values: Vec<f32> = (0..24).flat_map(row).collect();
        let found = in_halves(&values, 2, 4, 2);
        let order = [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23];
        assert_eq!(found, order.into_iter().flat_map(row).collect::<Vec<_>>());
    }
}
