//! The table of a model's parameters: their names, extents, order and initial values, which adapters train, and the dimension
//! along which tensor parallel ranks shard them. Loaders check files against it; masters, moments
//! and gradients are in its order.

use trainyard_protocol::LoraSpec;

use crate::config::ModelConfig;

/// A linear layer of a decoder block that an adapter can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    /// Queries.
    Q,
    /// Keys.
    K,
    /// Values.
    V,
    /// Attention output.
    O,
    /// MLP gate.
    Gate,
    /// MLP up.
    Up,
    /// MLP down.
    Down,
}

impl Projection {
    /// In parameter order.
    pub(crate) const ALL: [Self; 7] = [Self::Q, Self::K, Self::V, Self::O, Self::Gate, Self::Up, Self::Down];

    /// Module within a block, in the spelling of Hugging Face.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::Q => "self_attn.q_proj",
            Self::K => "self_attn.k_proj",
            Self::V => "self_attn.v_proj",
            Self::O => "self_attn.o_proj",
            Self::Gate => "mlp.gate_proj",
            Self::Up => "mlp.up_proj",
            Self::Down => "mlp.down_proj",
        }
    }

    /// (outputs, inputs).
    pub(crate) fn extents(self, c: &ModelConfig) -> (usize, usize) {
        match self {
            Self::Q => (c.q_width(), c.hidden_size),
            Self::K | Self::V => (c.kv_width(), c.hidden_size),
            Self::O => (c.hidden_size, c.q_width()),
            Self::Gate | Self::Up => (c.intermediate_size, c.hidden_size),
            Self::Down => (c.hidden_size, c.intermediate_size),
        }
    }

    /// Whether it belongs to attention, else to the MLP.
    pub(crate) fn is_attention(self) -> bool {
        matches!(self, Self::Q | Self::K | Self::V | Self::O)
    }

    /// Whether adapters of this kind are on it.
    pub(crate) fn is_adapted(self, lora: &LoraSpec) -> bool {
        if self.is_attention() { lora.train_attn } else { lora.train_mlp }
    }

    /// Tensor parallel ranks share the inputs of projections back into the residual stream, and the outputs of the others
    /// (Shoeybi et al. 2019, arXiv:1909.08053).
    fn is_row_parallel(self) -> bool {
        matches!(self, Self::O | Self::Down)
    }
}

/// Initial values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// Those of the checkpoint.
    Checkpoint,
    /// Uniform between ±1/sqrt(inputs) (He et al. 2015, arXiv:1502.01852, with a = sqrt 5): A of an adapter.
    KaimingUniform,
    /// Zeros: B of an adapter.
    Zeros,
}

/// The dimension along which tensor parallel ranks share a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardAxis {
    /// Every rank has all of it.
    Replicated,
    /// Outputs, or rows of an embedding.
    Outputs,
    /// Inputs.
    Inputs,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamSpec {
    /// In the spelling of Hugging Face; of adapters, the module's name with `.lora_A` or `.lora_B`.
    pub name: String,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    pub init: Init,
    /// How ranks share it.
    pub shard: ShardAxis,
}

impl ParamSpec {
    fn base(name: String, shape: &[usize], shard: ShardAxis) -> Self {
        Self { name, shape: shape.to_vec(), init: Init::Checkpoint, shard }
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Elements of a norm or bias; 0 of a matrix.
    pub(super) fn vector_len(&self) -> usize {
        if self.shape.len() == 1 { self.len() } else { 0 }
    }
}

/// Indices of a linear layer's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearParams {
    /// `[outputs, inputs]`.
    pub weight: usize,
    /// `[outputs]`.
    pub bias: Option<usize>,
}

/// Indices of a decoder block's parameters.
#[derive(Clone, Debug)]
pub(crate) struct BlockParams {
    /// RMSNorm before attention.
    pub pre_attention: usize,
    /// RMSNorm of what attention adds.
    pub post_attention: Option<usize>,
    /// RMSNorm of q heads and of k heads.
    pub head_norms: Option<[usize; 2]>,
    /// RMSNorm before the MLP.
    pub pre_mlp: usize,
    /// RMSNorm of what the MLP adds.
    pub post_mlp: Option<usize>,
    /// By [`Projection`].
    projections: [LinearParams; 7],
}

impl BlockParams {
    /// Those of a projection.
    pub(crate) fn projection(&self, projection: Projection) -> LinearParams {
        self.projections[projection as usize]
    }
}

/// All parameters of a model.
#[derive(Clone, Debug)]
pub(crate) struct ParamTable {
    /// In the order of masters, moments and gradients.
    pub specs: Vec<ParamSpec>,
    /// Index of the token embedding.
    pub embed: usize,
    /// Decoder blocks.
    pub blocks: Vec<BlockParams>,
    /// Index of the final RMSNorm.
    pub norm: usize,
    /// Index of the unembedding; the embedding's when tied.
    pub head: usize,
}

/// A module with an adapter on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdaptedModule {
    /// Its name, `model.layers.0.self_attn.q_proj` … `lm_head`.
    pub name: String,
    /// (outputs, inputs).
    pub extents: (usize, usize),
    /// Block and projection; `None` is the unembedding.
    pub slot: Option<(usize, Projection)>,
}

impl ParamTable {
    /// The parameters of a model.
    pub(crate) fn new(c: &ModelConfig) -> Self {
        let mut table = TableBuilder::default();
        let embedding = [c.vocab_size, c.hidden_size];
        let embed = table.add("model.embed_tokens.weight".into(), &embedding, ShardAxis::Outputs);
        let blocks = (0..c.num_layers()).map(|layer| table.block(c, layer)).collect();
        let norm = table.add("model.norm.weight".into(), &[c.hidden_size], ShardAxis::Replicated);
        let head = match c.tie_word_embeddings {
            true => embed,
            false => table.add("lm_head.weight".into(), &embedding, ShardAxis::Outputs),
        };
        Self { specs: table.specs, embed, blocks, norm, head }
    }

    /// Modules that adapters of a kind are on, in parameter order.
    pub(crate) fn adapted_modules(c: &ModelConfig, lora: &LoraSpec) -> Vec<AdaptedModule> {
        let slots = |layer| Projection::ALL.into_iter().filter(|p| p.is_adapted(lora)).map(move |p| (layer, p));
        let mut modules: Vec<_> = (0..c.num_layers()).flat_map(slots).map(|slot| AdaptedModule::of(c, slot)).collect();
        if lora.train_unembed {
            modules.push(AdaptedModule::unembedding(c));
        }
        modules
    }

    /// Parameters of an adapter: A `[rank, inputs]` and B `[outputs, rank]` of each module, one after the other.
    pub(crate) fn of_adapter(c: &ModelConfig, lora: &LoraSpec) -> Vec<ParamSpec> {
        let rank = lora.rank as usize;
        let modules = Self::adapted_modules(c, lora).into_iter();
        modules
            .flat_map(|AdaptedModule { name, extents: (outputs, inputs), slot }| {
                let rows = slot.is_some_and(|(_, projection)| projection.is_row_parallel());
                let [a, b] = match rows {
                    true => [ShardAxis::Inputs, ShardAxis::Replicated],
                    false => [ShardAxis::Replicated, ShardAxis::Outputs],
                };
                let spec = |part, shape, init, shard| ParamSpec { name: format!("{name}.{part}"), shape, init, shard };
                [
                    spec("lora_A", vec![rank, inputs], Init::KaimingUniform, a),
                    spec("lora_B", vec![outputs, rank], Init::Zeros, b),
                ]
            })
            .collect()
    }

    /// What a run trains: the parameters of its adapter, or all of the model.
    pub(crate) fn trained(&self, c: &ModelConfig, lora: Option<&LoraSpec>) -> Vec<ParamSpec> {
        lora.map_or_else(|| self.specs.clone(), |lora| Self::of_adapter(c, lora))
    }

    /// Elements of all parameters.
    pub(crate) fn elements(&self) -> usize {
        self.specs.iter().map(ParamSpec::len).sum()
    }
}

impl AdaptedModule {
    /// A projection of a block.
    pub(crate) fn of(c: &ModelConfig, (layer, projection): (usize, Projection)) -> Self {
        let name = format!("model.layers.{layer}.{}", projection.module());
        Self { name, extents: projection.extents(c), slot: Some((layer, projection)) }
    }

    /// The unembedding.
    pub(crate) fn unembedding(c: &ModelConfig) -> Self {
        Self { name: "lm_head".into(), extents: (c.vocab_size, c.hidden_size), slot: None }
    }
}

#[derive(Default)]
struct TableBuilder {
    specs: Vec<ParamSpec>,
}

impl TableBuilder {
    fn add(&mut self, name: String, shape: &[usize], shard: ShardAxis) -> usize {
        self.specs.push(ParamSpec::base(name, shape, shard));
        self.specs.len() - 1
    }

    fn block(&mut self, c: &ModelConfig, layer: usize) -> BlockParams {
        let block = &c.blocks[layer];
        let norm = |this: &mut Self, name: &str, width: usize| {
            this.add(format!("model.layers.{layer}.{name}.weight"), &[width], ShardAxis::Replicated)
        };
        let (norms, hidden) = (block.norms, c.hidden_size);
        let pre_attention = norm(self, norms.pre_attention, hidden);
        let [q, k, v] = self.projections(c, layer, [Projection::Q, Projection::K, Projection::V], block.biases.qkv);
        let [o] = self.projections(c, layer, [Projection::O], block.biases.o);
        let head = |this: &mut Self, name| norm(this, name, c.head_dim);
        let head_norms = block.head_norms.then(|| [head(self, "self_attn.q_norm"), head(self, "self_attn.k_norm")]);
        let post_attention = norms.post_attention.map(|name| norm(self, name, hidden));
        let pre_mlp = norm(self, norms.pre_mlp, hidden);
        let mlp = [Projection::Gate, Projection::Up, Projection::Down];
        let [gate, up, down] = self.projections(c, layer, mlp, block.biases.mlp);
        let post_mlp = norms.post_mlp.map(|name| norm(self, name, hidden));
        let projections = [q, k, v, o, gate, up, down];
        BlockParams { pre_attention, post_attention, head_norms, pre_mlp, post_mlp, projections }
    }

    /// Weights of some projections, then their biases.
    fn projections<const N: usize>(
        &mut self,
        c: &ModelConfig,
        layer: usize,
        of: [Projection; N],
        biased: bool,
    ) -> [LinearParams; N] {
        let name = |p: Projection, part| format!("model.layers.{layer}.{}.{part}", p.module());
        let weights = of.map(|p| {
            let (outputs, inputs) = p.extents(c);
            let shard = if p.is_row_parallel() { ShardAxis::Inputs } else { ShardAxis::Outputs };
            LinearParams { weight: self.add(name(p, "weight"), &[outputs, inputs], shard), bias: None }
        });
        let mut all = weights.into_iter().zip(of).map(|(params, p)| {
            let shard = if p.is_row_parallel() { ShardAxis::Replicated } else { ShardAxis::Outputs };
            let bias = biased.then(|| self.add(name(p, "bias"), &[p.extents(c).0], shard));
            LinearParams { bias, ..params }
        });
        std::array::from_fn(|i| all.next().unwrap_or(weights[i]))
    }
}
