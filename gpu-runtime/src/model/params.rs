//! The table of a model's parameters: their names, extents, order and initial values, which adapters train, and the dimension
//! along which ranks shard them. Loaders check files against it; masters, moments
//! and gradients are in its order.

use trainyard_protocol::{LoraSpec, RunSpec};

pub(crate) use super::mixer_params::{
    AttentionParams, ConvolutionParams, LatentParams, MixerParams, QkvParams, RecurrenceParams,
};
use super::projection::Projection;
use super::shard_axis::ShardAxis;
use crate::config::{Experts, Mixer, ModelConfig};

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
    /// Dimension along which ranks shard the parameter.
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

    /// Elements of a norm, of a bias or of a convolution by channel; 0 of a matrix.
    pub(super) fn vector_len(&self) -> usize {
        if matches!(self.shape[..], [_] | [_, 1, _]) { self.len() } else { 0 }
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
    /// Index of the block's first parameter.
    pub first: usize,
    /// Index of the RMSNorm before the mixer.
    pub pre_attention: Option<usize>,
    /// Index of the RMSNorm of the mixer's output.
    pub post_attention: Option<usize>,
    /// Index of the RMSNorm before the MLP.
    pub pre_mlp: Option<usize>,
    /// Index of the RMSNorm of the MLP's output.
    pub post_mlp: Option<usize>,
    /// Parameters of the mixer, in blocks that have one.
    pub mixer: Option<MixerParams>,
    /// Parameters of the MLP, in blocks that have one.
    pub mlp: Option<MlpParams>,
}

/// Indices of the parameters of a block's MLP.
#[derive(Clone, Debug)]
pub(crate) enum MlpParams {
    Dense(InnerParams),
    Experts(ExpertParams),
}

/// Indices of the parameters of one MLP: gate, where there is one, and up; then down.
#[derive(Clone, Debug)]
pub(crate) struct InnerParams {
    pub inner: Vec<LinearParams>,
    pub down: LinearParams,
}

/// Indices of the parameters of a block's experts.
#[derive(Clone, Debug)]
pub(crate) struct ExpertParams {
    pub router: LinearParams,
    /// Parameters of each expert, whichever rank has it.
    pub experts: Vec<InnerParams>,
    /// Parameters of the shared MLP.
    pub shared: Option<InnerParams>,
    /// Projection to the score that the output of that MLP is gated with.
    pub shared_gate: Option<LinearParams>,
    /// Projections to the latent of experts and back.
    pub latent: Option<[LinearParams; 2]>,
}

/// The parameters that a run trains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainedParams<'a> {
    /// The adapter; `None` is all parameters of the model.
    pub lora: Option<&'a LoraSpec>,
    /// Whether the run has a scalar head.
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
pub(super) struct TableBuilder {
    pub(super) specs: Vec<ParamSpec>,
}

impl TableBuilder {
    pub(super) fn add(&mut self, name: String, shape: &[usize], shard: ShardAxis) -> usize {
        self.specs.push(ParamSpec::base(name, shape, shard));
        self.specs.len() - 1
    }

    fn block(&mut self, c: &ModelConfig, layer: usize) -> BlockParams {
        let (block, first) = (&c.blocks[layer], self.specs.len());
        let norm = |this: &mut Self, name: Option<&str>| {
            name.map(|name| this.norm(layer, name, c.hidden_size, ShardAxis::Replicated))
        };
        let norms = block.norms;
        let pre_attention = norm(self, norms.pre_attention);
        let mixer = match &block.mixer {
            None => None,
            Some(Mixer::Attention(attention)) => Some(MixerParams::Attention(self.attention(c, layer, attention))),
            Some(Mixer::Recurrent(shape)) => Some(MixerParams::Recurrent(self.recurrence(c, layer, shape))),
            Some(Mixer::Convolution(shape)) => Some(MixerParams::Convolution(self.convolution(c, layer, shape))),
        };
        let post_attention = norm(self, norms.post_attention);
        let pre_mlp = norm(self, norms.pre_mlp);
        let mlp = match &block.experts {
            _ if !block.has_mlp => None,
            None => Some(MlpParams::Dense(self.mlp(c, layer, Projection::inner(block), Projection::Down))),
            Some(experts) => Some(MlpParams::Experts(self.experts(c, layer, experts))),
        };
        let post_mlp = norm(self, norms.post_mlp);
        BlockParams { first, pre_attention, post_attention, pre_mlp, post_mlp, mixer, mlp }
    }

    /// Weights of an MLP, then its biases.
    fn mlp(&mut self, c: &ModelConfig, layer: usize, inner: &[Projection], down: Projection) -> InnerParams {
        let block = &c.blocks[layer];
        let module = |p: Projection| p.module(block).to_owned();
        self.mlp_of(c, layer, &[inner, &[down]].concat(), module, Projection::shard)
    }

    /// Weights of an MLP, whose projections end with down, then its biases.
    fn mlp_of(
        &mut self,
        c: &ModelConfig,
        layer: usize,
        of: &[Projection],
        module: impl Fn(Projection) -> String,
        shard: impl Fn(Projection) -> ShardAxis,
    ) -> InnerParams {
        let mut inner = self.linears(c, layer, of, c.blocks[layer].biases.mlp, module, shard);
        let down = inner.split_off(of.len() - 1)[0];
        InnerParams { inner, down }
    }

    /// The router, then expert by expert, then the MLP beside them with its gate, then the projections of the latent.
    fn experts(&mut self, c: &ModelConfig, layer: usize, experts: &Experts) -> ExpertParams {
        let block = &c.blocks[layer];
        let name = |part| format!("model.layers.{layer}.{}.{part}", experts.router);
        let weight = self.add(name("weight"), &[experts.count, c.hidden_size], ShardAxis::Replicated);
        let bias = block.biases.router.then(|| self.add(name("bias"), &[experts.count], ShardAxis::Replicated));
        let projections = [Projection::inner(block), &[Projection::Down]].concat();
        let own = (0..experts.count).map(|expert| {
            let first = self.specs.len();
            let module = |p: Projection| p.module(block).replace("mlp.", &format!("mlp.experts.{expert}."));
            let params = self.mlp_of(c, layer, &projections, module, |_| ShardAxis::Expert);
            // Tables of all ranks have the same parameters; those of other ranks' experts are empty.
            if !experts.held.contains(&expert) {
                self.specs[first..].iter_mut().for_each(|spec| spec.shape[0] = 0);
            }
            params
        });
        let own = own.collect();
        let has_shared = experts.shared.is_some();
        let shared = has_shared.then(|| self.mlp(c, layer, Projection::shared_inner(block), Projection::SharedDown));
        let shared_gate = (has_shared && experts.shared_is_gated).then(|| {
            let name = format!("model.layers.{layer}.mlp.shared_expert_gate.weight");
            LinearParams { weight: self.add(name, &[1, c.hidden_size], ShardAxis::Replicated), bias: None }
        });
        let of_latent = [Projection::LatentIn, Projection::LatentOut];
        let latent = experts.latent.is_some().then(|| self.projections(c, layer, of_latent, false));
        ExpertParams { experts: own, shared, shared_gate, latent, router: LinearParams { weight, bias } }
    }

    /// Weights of some projections, then their biases.
    pub(super) fn projections<const N: usize>(
        &mut self,
        c: &ModelConfig,
        layer: usize,
        of: [Projection; N],
        biased: bool,
    ) -> [LinearParams; N] {
        let module = |p: Projection| p.module(&c.blocks[layer]).to_owned();
        let all = self.linears(c, layer, &of, biased, module, Projection::shard);
        std::array::from_fn(|i| all[i])
    }

    fn linears(
        &mut self,
        c: &ModelConfig,
        layer: usize,
        of: &[Projection],
        biased: bool,
        module: impl Fn(Projection) -> String,
        shard: impl Fn(Projection) -> ShardAxis,
    ) -> Vec<LinearParams> {
        let name = |p: Projection, part| format!("model.layers.{layer}.{}.{part}", module(p));
        let of_weight = |p: &Projection| {
            let (outputs, inputs) = p.extents(c, layer);
            LinearParams { weight: self.add(name(*p, "weight"), &[outputs, inputs], shard(*p)), bias: None }
        };
        let mut all: Vec<_> = of.iter().map(of_weight).collect();
        for (params, p) in all.iter_mut().zip(of).filter(|_| biased) {
            let shard = if shard(*p) == ShardAxis::Inputs { ShardAxis::Replicated } else { shard(*p) };
            params.bias = Some(self.add(name(*p, "bias"), &[p.extents(c, layer).0], shard));
        }
        all
    }
}
