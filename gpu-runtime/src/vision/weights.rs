//! A tower's weights in the form that its backend reads.

use crate::backend::{Backend, Gelu, LayerNorm, LinearCall, MatrixRole, Rows, Source, VisionOps};
use crate::config::{LoadError, TensorSource, VisionConfig};

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
    /// The learned grid of positions, `[side², hidden]`.
    pub(super) positions: B::Rows,
    pub(super) blocks: Vec<TowerBlock<B>>,
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
        let mut loader = Loader { backend, config, tensors, seen, bytes: 0 };
        let patch_embed = loader.linear("patch_embed.proj", config.patch_dim)?;
        let grid = loader.read("pos_embed.weight")?;
        let positions = B::Family::upload_rows(backend, &grid, config.hidden);
        loader.bytes += size_of_val(&grid[..]);
        let blocks = (0..config.depth).map(|block| loader.block(block)).collect::<Result<_, _>>()?;
        let merger = loader.merger("merger", false)?;
        let deepstack = 0..config.deepstack.len();
        let deepstack = deepstack.map(|k| loader.merger(&format!("deepstack_merger_list.{k}"), true));
        let deepstack = deepstack.collect::<Result<_, _>>()?;
        let bytes = loader.bytes;
        Ok(Self { config: config.clone(), patch_embed, positions, blocks, merger, deepstack, bytes })
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
        let name = format!("{}{name}", self.config.prefix);
        let values = self.tensors.read(&name)?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(LoadError::Unsupported(format!("tensor {name} is not finite")));
        }
        (self.seen)(&name, &values);
        Ok(values)
    }

    fn vector(&mut self, name: &str) -> Result<B::Vector, LoadError> {
        let values = self.read(name)?;
        self.bytes += size_of_val(&values[..]);
        Ok(self.backend.vector(&[Source::Host(&values)], 0.0))
    }

    fn linear(&mut self, name: &str, inputs: usize) -> Result<TowerLinear<B>, LoadError> {
        let values = self.read(&format!("{name}.weight"))?;
        let weight = self.backend.pack(&[Source::Host(&values)], inputs, MatrixRole::Base);
        self.bytes += self.backend.matrix_bytes(&weight);
        let bias = self.vector(&format!("{name}.bias"))?;
        Ok(TowerLinear { weight, bias, outputs: values.len() / inputs })
    }

    fn norm(&mut self, name: &str) -> Result<TowerNorm<B>, LoadError> {
        let weight = self.vector(&format!("{name}.weight"))?;
        Ok(TowerNorm { weight, bias: self.vector(&format!("{name}.bias"))?, eps: self.config.eps })
    }

    fn block(&mut self, block: usize) -> Result<TowerBlock<B>, LoadError> {
        let (d, width) = (self.config.hidden, self.config.width);
        let of = |name: &str| format!("blocks.{block}.{name}");
        Ok(TowerBlock {
            qkv: self.linear(&of("attn.qkv"), d)?,
            proj: self.linear(&of("attn.proj"), d)?,
            mlp: [self.linear(&of("mlp.linear_fc1"), d)?, self.linear(&of("mlp.linear_fc2"), width)?],
            norms: [self.norm(&of("norm1"))?, self.norm(&of("norm2"))?],
        })
    }

    fn merger(&mut self, name: &str, norms_joined: bool) -> Result<Merger<B>, LoadError> {
        let joined = self.config.hidden * self.config.merged();
        let norm = self.norm(&format!("{name}.norm"))?;
        let first = self.linear(&format!("{name}.linear_fc1"), joined)?;
        let second = self.linear(&format!("{name}.linear_fc2"), joined)?;
        Ok(Merger { norm, mlp: [first, second], norms_joined })
    }
}
