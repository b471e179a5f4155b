//! The table of a model's parameters: their names, extents, order and initial values, which adapters train, and the dimension
//! along which ranks shard them. Loaders check files against it; masters, moments
//! and gradients are in its order.

use trainyard_protocol::{LoraSpec, RunSpec};

use super::projection::Projection;
use super::shard_axis::ShardAxis;
use crate::config::{Experts, LatentAttention, ModelConfig};

/// Projections of an MLP, in parameter order.
const MLP: [Projection; 3] = [Projection::Gate, Projection::Up, Projection::Down];
/// Projections of the MLP beside routed experts.
const SHARED: [Projection; 3] = [Projection::SharedGate, Projection::SharedUp, Projection::SharedDown];

/// Initial values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// Values of the checkpoint.
    Checkpoint,
    /// Uniform between ±1/sqrt(inputs) (He et al. 2015, arXiv:1502.01852, with a = sqrt 5): A of an adapter.
    KaimingUniform,
    /// Zeros: B of an adapter, and a scalar head.
    Zeros,
}

/// Name, shape and initial value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamSpec {
    /// Name in the spelling of Hugging Face; for adapters the module's name with `.lora_A` or `.lora_B`.
    pub name: String,
    pub shape: Vec<usize>,
    pub init: Init,
    /// How ranks share it.
    pub shard: ShardAxis,
    /// Whether a rank computes only a part of its gradient: the parts of all ranks add up to the gradient.
    pub is_partial: bool,
}

impl ParamSpec {
    /// A parameter that every rank has all of, and whose gradient each computes in full.
    pub(super) fn replicated(name: &str, shape: &[usize], init: Init) -> Self {
        let shard = ShardAxis::Replicated;
        Self { name: name.to_owned(), shape: shape.to_vec(), init, shard, is_partial: false }
    }

    fn base(name: String, shape: &[usize], shard: ShardAxis) -> Self {
        Self { name, shape: shape.to_vec(), init: Init::Checkpoint, shard, is_partial: false }
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
    /// Index of the weight: `[outputs, inputs]`.
    pub weight: usize,
    /// Index of the bias: `[outputs]`.
    pub bias: Option<usize>,
}

/// Indices of a decoder block's parameters.
#[derive(Clone, Debug)]
pub(crate) struct BlockParams {
    /// Index of the RMSNorm before attention.
    pub pre_attention: usize,
    /// Index of the RMSNorm of attention's output.
    pub post_attention: Option<usize>,
    /// RMSNorm of q heads and of k heads.
    pub head_norms: Option<[usize; 2]>,
    /// RMSNorm before the MLP.
    pub pre_mlp: usize,
    /// RMSNorm of what the MLP adds.
    pub post_mlp: Option<usize>,
    /// Parameters of the projections to queries, keys and values.
    pub qkv: QkvParams,
    pub o: LinearParams,
    /// Scores of the heads' sinks.
    pub sinks: Option<usize>,
    pub mlp: MlpParams,
}

/// Indices of the parameters that queries, keys and values are made with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QkvParams {
    /// q, k and v.
    Heads([LinearParams; 3]),
    Latent(LatentParams),
}

impl QkvParams {
    /// Indices of the latents' RMSNorms.
    pub(super) fn norms(&self) -> Vec<usize> {
        match self {
            Self::Heads(_) => Vec::new(),
            Self::Latent(p) => p.q_down.iter().map(|(_, norm)| *norm).chain([p.kv_norm]).collect(),
        }
    }
}

/// Indices of the parameters of latent attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatentParams {
    /// Projection to the queries' latent, and the index of the latent's RMSNorm.
    pub q_down: Option<(LinearParams, usize)>,
    /// Projection to the queries.
    pub q: LinearParams,
    /// Projection to the latent of keys and values, and to the part of keys that all heads share.
    pub kv_down: LinearParams,
    /// Index of the RMSNorm of that latent.
    pub kv_norm: usize,
    /// Projection from that latent to keys and values.
    pub kv_up: LinearParams,
}

/// Indices of the parameters of a block's MLP.
#[derive(Clone, Debug)]
pub(crate) enum MlpParams {
    /// gate, up and down.
    Dense([LinearParams; 3]),
    Experts {
        router: LinearParams,
        /// gate, up and down of each, whichever rank has it.
        experts: Vec<[LinearParams; 3]>,
        /// Parameters of the MLP beside the experts.
        shared: Option<[LinearParams; 3]>,
    },
}

/// The parameters that a run trains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainedParams<'a> {
    /// The adapter; `None` is all parameters of the model.
    pub lora: Option<&'a LoraSpec>,
    /// A scalar head besides.
    pub scalar_head: bool,
}

impl<'a> From<&'a RunSpec> for TrainedParams<'a> {
    fn from(spec: &'a RunSpec) -> Self {
        Self { lora: spec.lora.as_ref(), scalar_head: spec.head.is_scalar() }
    }
}

impl<'a> From<Option<&'a LoraSpec>> for TrainedParams<'a> {
    fn from(lora: Option<&'a LoraSpec>) -> Self {
        Self { lora, scalar_head: false }
    }
}

/// All parameters of a model.
#[derive(Clone, Debug)]
pub(crate) struct ParamTable {
    /// Specs in the order of masters, moments and gradients.
    pub specs: Vec<ParamSpec>,
    /// Index of the token embedding.
    pub embed: usize,
    /// Parameters of each decoder block.
    pub blocks: Vec<BlockParams>,
    /// Index of the final RMSNorm.
    pub norm: usize,
    /// Index of the unembedding; the embedding's when tied.
    pub head: usize,
}

impl ParamTable {
    /// The parameters of a model.
    pub(crate) fn new(c: &ModelConfig) -> Self {
        let mut table = TableBuilder::default();
        let embedding = [c.vocab_rows(), c.hidden_size];
        let embed = table.add("model.embed_tokens.weight".into(), &embedding, ShardAxis::Vocabulary);
        let blocks = (0..c.num_layers()).map(|layer| table.block(c, layer)).collect();
        let norm = table.add("model.norm.weight".into(), &[c.hidden_size], ShardAxis::Replicated);
        let head = match c.tie_word_embeddings {
            true => embed,
            false => table.add("lm_head.weight".into(), &embedding, ShardAxis::Vocabulary),
        };
        Self { specs: table.specs, embed, blocks, norm, head }
    }

    /// Specs of the parameters that a run trains: those of its adapter, or all of the model; then those of its scalar
    /// head.
    pub(crate) fn trained<'a>(&self, c: &ModelConfig, what: impl Into<TrainedParams<'a>>) -> Vec<ParamSpec> {
        let TrainedParams { lora, scalar_head } = what.into();
        let mut params = lora.map_or_else(|| self.specs.clone(), |lora| Self::of_adapter(c, lora));
        if scalar_head {
            params.extend(Self::of_scalar_head(c));
        }
        params
    }

    /// Elements of all parameters.
    pub(crate) fn elements(&self) -> usize {
        self.specs.iter().map(ParamSpec::len).sum()
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
        let qkv = match &c.latent {
            Some(latent) => QkvParams::Latent(self.latent(c, layer, latent)),
            None => {
                let parts = [Projection::Q, Projection::K, Projection::V];
                QkvParams::Heads(self.projections(c, layer, parts, block.biases.qkv))
            }
        };
        let [o] = self.projections(c, layer, [Projection::O], block.biases.o);
        let sinks = block
            .sinks
            .then(|| self.add(format!("model.layers.{layer}.self_attn.sinks"), &[c.num_heads], ShardAxis::Outputs));
        // A rank normalises its own heads.
        let head = |this: &mut Self, name| {
            let index = norm(this, name, c.head_dim);
            this.specs[index].is_partial = true;
            index
        };
        let head_norms = block.head_norms.then(|| [head(self, "self_attn.q_norm"), head(self, "self_attn.k_norm")]);
        let post_attention = norms.post_attention.map(|name| norm(self, name, hidden));
        let pre_mlp = norm(self, norms.pre_mlp, hidden);
        let mlp = match &block.experts {
            None => MlpParams::Dense(self.projections(c, layer, MLP, block.biases.mlp)),
            Some(experts) => self.experts(c, layer, experts),
        };
        let post_mlp = norms.post_mlp.map(|name| norm(self, name, hidden));
        BlockParams { pre_attention, post_attention, head_norms, pre_mlp, post_mlp, qkv, o, sinks, mlp }
    }

    /// Projections in the order of the computation, each latent's norm after the one to it.
    fn latent(&mut self, c: &ModelConfig, layer: usize, latent: &LatentAttention) -> LatentParams {
        let biased = c.blocks[layer].biases.qkv;
        let norm = |this: &mut Self, name: &str, width: usize| {
            this.add(format!("model.layers.{layer}.self_attn.{name}.weight"), &[width], ShardAxis::Replicated)
        };
        let q_down = latent.query_rank.map(|rank| {
            let [down] = self.projections(c, layer, [Projection::QDown], biased);
            (down, norm(self, "q_a_layernorm", rank))
        });
        let query = if q_down.is_some() { Projection::QUp } else { Projection::Q };
        let [q] = self.projections(c, layer, [query], false);
        let [kv_down] = self.projections(c, layer, [Projection::KvDown], biased);
        let kv_norm = norm(self, "kv_a_layernorm", latent.kv_rank);
        let [kv_up] = self.projections(c, layer, [Projection::KvUp], false);
        LatentParams { q_down, q, kv_down, kv_norm, kv_up }
    }

    /// The router, then expert by expert, then the MLP beside them.
    fn experts(&mut self, c: &ModelConfig, layer: usize, experts: &Experts) -> MlpParams {
        let (biases, shared) = (c.blocks[layer].biases, experts.shared.is_some());
        let name = |part| format!("model.layers.{layer}.{}.{part}", experts.router);
        let weight = self.add(name("weight"), &[experts.count, c.hidden_size], ShardAxis::Replicated);
        let bias = biases.router.then(|| self.add(name("bias"), &[experts.count], ShardAxis::Replicated));
        let own = (0..experts.count).map(|expert| {
            let first = self.specs.len();
            let module = |p: Projection| p.module().replace("mlp.", &format!("mlp.experts.{expert}."));
            let params = self.linears(c, layer, MLP, biases.mlp, module, |_| ShardAxis::Expert);
            // Tables of all ranks have the same parameters; those of other ranks' experts are empty.
            if !experts.held.contains(&expert) {
                self.specs[first..].iter_mut().for_each(|spec| spec.shape[0] = 0);
            }
            params
        });
        let experts = own.collect();
        let shared = shared.then(|| self.projections(c, layer, SHARED, biases.mlp));
        MlpParams::Experts { experts, shared, router: LinearParams { weight, bias } }
    }

    /// Weights of some projections, then their biases.
    fn projections<const N: usize>(
        &mut self,
        c: &ModelConfig,
        layer: usize,
        of: [Projection; N],
        biased: bool,
    ) -> [LinearParams; N] {
        self.linears(c, layer, of, biased, |p| p.module().to_owned(), Projection::shard)
    }

    fn linears<const N: usize>(
        &mut self,
        c: &ModelConfig,
        layer: usize,
        of: [Projection; N],
        biased: bool,
        module: impl Fn(Projection) -> String,
        shard: impl Fn(Projection) -> ShardAxis,
    ) -> [LinearParams; N] {
        let name = |p: Projection, part| format!("model.layers.{layer}.{}.{part}", module(p));
        let weights = of.map(|p| {
            let (outputs, inputs) = p.extents(c, layer);
            LinearParams { weight: self.add(name(p, "weight"), &[outputs, inputs], shard(p)), bias: None }
        });
        let mut all = weights.into_iter().zip(of).map(|(params, p)| {
            let shard = if shard(p) == ShardAxis::Inputs { ShardAxis::Replicated } else { shard(p) };
            let bias = biased.then(|| self.add(name(p, "bias"), &[p.extents(c, layer).0], shard));
            LinearParams { bias, ..params }
        });
        std::array::from_fn(|i| all.next().unwrap_or(weights[i]))
    }
}
