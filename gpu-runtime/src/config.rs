//! Configuration and files of a model, independent of the file format.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trainyard_protocol::MemoryPlan;

mod experts;
mod indexer;
mod latent;
mod mixer;
mod spelling;
mod tower_names;
mod vision;
mod vocabulary;
mod weight_files;

pub use crate::backend::rope::{QueryScaling, RopeConfig, RopeScaling};
pub use crate::backend::{Activation, RouterRule, RouterScores};
pub use crate::backend::{ConvolutionShape, RecurrentRule, RecurrentShape, StateShape};
use crate::parallel::LayoutError;
pub use crate::runs::Runs;
pub use crate::tensor_source::TensorSource;
pub(crate) use crate::tensor_source::{absent_part, read_span};
pub use experts::{ExpertStorage, Experts};
pub use indexer::Indexer;
pub use latent::LatentAttention;
pub use mixer::{Attention, HeadNorms, Mixer};
pub use spelling::{FusedRows, Rename, Spelling};
pub(crate) use spelling::{block_name, split_block};
pub use tower_names::{BlockNames, MergerNames, TowerNames};
pub(crate) use vision::PATCHES_OF_PART;
pub use vision::{PatchRotation, PositionGrid, Resampling, RopeSections, VisionConfig, VisionTensor};
pub use vocabulary::VocabularyPart;
pub use weight_files::WeightFiles;

/// A decoder-only transformer: RMSNorm, rotary grouped-query attention, gated MLP. Differences between families are in
/// these fields and in the [`Block`]s; one forward pass, one backward pass, one memory plan and one parameter table
/// read them.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// The family: its `model_type` in Hugging Face's spelling.
    pub arch: &'static str,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the MLP.
    pub intermediate_size: usize,
    /// Number of query heads.
    pub num_heads: usize,
    /// Number of key and value heads; divides `num_heads`.
    pub num_kv_heads: usize,
    /// Width of a head; `num_heads * head_dim` need not equal `hidden_size`. With latent attention, the padded width.
    pub head_dim: usize,
    /// Projections to queries, keys and values through latents, if the model has latent attention.
    pub latent: Option<LatentAttention>,
    /// Indexer that chooses the positions of attention, if the model has sparse attention.
    pub indexer: Option<Indexer>,
    /// Number of tokens in the vocabulary. Ranks may hold the rows of embedding and unembedding in parts.
    pub vocab_size: usize,
    /// The part of these rows that this rank holds.
    pub vocab_part: VocabularyPart,
    /// Longest sequence that the model supports.
    pub max_position_embeddings: usize,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f32,
    /// Added to the stored weights of norms: 1 if files contain the difference from 1.
    pub norm_offset: f32,
    /// Factor on embeddings before the first block.
    pub embedding_scale: f32,
    /// Factor on the output of attention, a mixer or an MLP before it is added to the residual stream.
    pub residual_scale: f32,
    /// Multiplies the logits before any softmax over them.
    pub logit_scale: f32,
    /// Factor on attention's scores.
    pub attention_scale: f32,
    /// Elements of a head that are rotated, from its first one on; `None` for all of them.
    pub rotary_dim: Option<usize>,
    /// Factor of rotated queries by position.
    pub query_scaling: Option<QueryScaling>,
    /// Rotary embeddings; each block uses one.
    pub ropes: Vec<RopeConfig>,
    /// Decoder blocks, first to last.
    pub blocks: Vec<Block>,
    /// Whether the unembedding (`lm_head`) is the embedding.
    pub tie_word_embeddings: bool,
    /// Tokens that end a completion.
    pub eos_token_ids: Vec<u32>,
    /// Names of tensors in the family's files, and which tensors are fused there.
    pub spelling: Spelling,
    /// Rotary positions of images; `None` if a token's position is one number.
    pub rope_sections: Option<RopeSections>,
    /// The tower that makes embeddings of images; `None` in models that do not take images.
    pub vision: Option<VisionConfig>,
}

impl ModelConfig {
    /// Width of the MLP of a block, or of each of its experts.
    pub fn mlp_width(&self, layer: usize) -> usize {
        self.blocks[layer].experts.as_ref().map_or(self.intermediate_size, |experts| experts.width)
    }

    /// Number of decoder blocks.
    pub fn num_layers(&self) -> usize {
        self.blocks.len()
    }

    /// Elements of all query heads.
    pub fn q_width(&self) -> usize {
        self.num_heads * self.head_dim
    }

    /// Elements of all key heads, and of all value heads.
    pub fn kv_width(&self) -> usize {
        self.num_kv_heads * self.head_dim
    }

    /// Bytes of the rotary tables: pairs of cosine and sine for every position.
    pub(crate) fn rope_bytes(&self) -> usize {
        self.ropes.len() * self.max_position_embeddings * self.rope_dim() * size_of::<f32>()
    }
}

/// A decoder block: `x += mixer(norm(x))`, `x += mlp(norm(x))`, with additions by family.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// RMSNorms around attention and MLP.
    pub norms: BlockNorms,
    /// The part of the block that mixes positions, in blocks that have one.
    pub mixer: Option<Mixer>,
    /// Whether the block has an MLP or experts.
    pub has_mlp: bool,
    /// Activation of the MLP, which determines whether the MLP has a gate.
    pub activation: Activation,
    /// Projections that have biases.
    pub biases: Biases,
    /// Experts in place of the MLP.
    pub experts: Option<Experts>,
    /// Whether projections of one input are one module, with one adapter: all inputs of a recurrence, and gate and up
    /// of an MLP.
    pub joins_inputs: bool,
}

/// Names of a block's RMSNorms in Hugging Face checkpoints, by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockNorms {
    /// Norm of the input of attention.
    pub pre_attention: Option<&'static str>,
    /// Norm of attention's output, before it is added to the residual stream.
    pub post_attention: Option<&'static str>,
    /// Norm of the input of the MLP.
    pub pre_mlp: Option<&'static str>,
    /// Norm of the MLP's output, before it is added to the residual stream.
    pub post_mlp: Option<&'static str>,
}

impl BlockNorms {
    /// Norms of only the inputs, with Llama's names.
    pub const PRE: Self = Self {
        pre_attention: Some("input_layernorm"),
        post_attention: None,
        pre_mlp: Some("post_attention_layernorm"),
        post_mlp: None,
    };
}

/// Projections of a block that have biases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Biases {
    /// Projections of q, k and v; with latent attention the projections to the latents.
    pub qkv: bool,
    /// Projection of attention's output.
    pub o: bool,
    /// Projections gate, up and down, including those of experts.
    pub mlp: bool,
    /// Router of the experts.
    pub router: bool,
}

/// Tokenizer and configuration files by name (`tokenizer.json`, `tokenizer_config.json`,
/// `config.json`, …), as a Hugging Face folder has them. Never weights.
pub type ModelFiles = BTreeMap<String, Vec<u8>>;

/// A model found on disk and checked: every tensor that its family needs is there with the right shape.
pub struct ModelSource {
    /// The folder or file that it was found in.
    pub path: PathBuf,
    /// Configuration of the model.
    pub config: ModelConfig,
    /// Tokenizer and configuration files.
    pub files: ModelFiles,
    /// Tensors of the model.
    pub tensors: Box<dyn TensorSource>,
    /// Files that contain the model's weights.
    pub weight_files: WeightFiles,
}

impl ModelSource {
    /// Returns whether both are the same model under any name: the same configuration and the same files.
    pub fn is_same_model(&self, other: &Self) -> bool {
        self.weight_files == other.weight_files && self.config == other.config
    }
}

/// A model that cannot be loaded. The text names the file, key or tensor.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file has an unexpected form.
    #[error("{path}: {reason}")]
    Malformed {
        /// Path of the file.
        path: String,
        /// Description of the problem.
        reason: String,
    },
    /// The model needs something that the runtime does not support.
    #[error("unsupported model: {0}")]
    Unsupported(String),
    /// Weights cannot be kept, or packed, in blocks.
    #[error("weights cannot stay block-quantized: {0}")]
    Blocks(String),
    /// The ranks of the layout cannot share the model.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A rank could not be started.
    #[error("rank {rank}: {reason}")]
    Rank {
        /// Number of the rank.
        rank: usize,
        /// Description of the problem.
        reason: String,
    },
    /// A GPU refused the models.
    #[error("the device refused the models; see the log for the reason")]
    Device,
    /// The models do not fit into the memory of a GPU.
    #[error("out of device memory: the models do not fit on the GPU; see the log for the request")]
    DeviceMemory,
    /// The memory budget leaves nothing for runs.
    #[error("the memory budget of {budget} bytes is too small: {}", parts(plan))]
    Memory {
        /// The budget in bytes.
        budget: u64,
        /// Parts that the budget would need.
        plan: MemoryPlan,
    },
    /// A tensor that the family needs is absent.
    #[error("tensor {0} is missing")]
    MissingTensor(String),
    /// A tensor's extents differ from those that the configuration implies.
    #[error("tensor {name} has shape {found:?}, expected {expected:?}")]
    WrongShape {
        /// Name of the tensor.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// Shape by the configuration.
        expected: Vec<usize>,
    },
}

/// The parts of a budget apart from runs.
fn parts(plan: &MemoryPlan) -> String {
    let MemoryPlan { weights, activations, checkpoints, kv, .. } = plan;
    format!(
        "models need {weights}, a training pass {activations}, sampler checkpoints {checkpoints}, keys and values at \
         least {kv}, and runs the rest"
    )
}
