//! What a model is made of, whatever file format described it.

use std::collections::BTreeMap;

/// A family that the runtime composes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// Llama, SmolLM2.
    Llama,
    /// Mistral (sliding window).
    Mistral,
    /// Qwen2, Qwen2.5 (biases on q, k, v).
    Qwen2,
    /// Qwen3 (RMSNorm on q and k heads).
    Qwen3,
}

impl Arch {
    /// The `model_type` of `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// A decoder-only transformer: RMSNorm, rotary grouped-query attention, gated SiLU MLP.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// The family.
    pub arch: Arch,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the MLP.
    pub intermediate_size: usize,
    /// Decoder blocks.
    pub num_layers: usize,
    /// Query heads.
    pub num_heads: usize,
    /// Key and value heads; divides `num_heads`.
    pub num_kv_heads: usize,
    /// Width of a head; `num_heads * head_dim` need not equal `hidden_size`.
    pub head_dim: usize,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Longest sequence.
    pub max_position_embeddings: usize,
    /// Added to the mean square in RMSNorm.
    pub rms_norm_eps: f32,
    /// Rotary embedding.
    pub rope: RopeConfig,
    /// Per layer: attend to the last `w` positions (own included), or to all.
    pub sliding_window: Vec<Option<usize>>,
    /// `lm_head` is the embedding.
    pub tie_word_embeddings: bool,
    /// q, k and v projections have biases.
    pub qkv_bias: bool,
    /// The output projection of attention has a bias.
    pub o_bias: bool,
    /// MLP projections have biases.
    pub mlp_bias: bool,
    /// RMSNorm on each q and k head before rotation.
    pub qk_norm: bool,
    /// Tokens that end a completion.
    pub eos_token_ids: Vec<u32>,
}

/// Rotary position embedding (Su et al. 2021, arXiv:2104.09864), half-split layout.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f64,
    /// Change of the frequencies for longer contexts.
    pub scaling: RopeScaling,
}

/// How rotary frequencies are stretched.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// As trained.
    None,
    /// All frequencies divided by a factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3: low frequencies divided, high ones kept, a smooth ramp between.
    Llama3 {
        /// The divisor.
        factor: f64,
        /// Wavelengths above `original / low` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original / high` are kept.
        high_freq_factor: f64,
        /// Context length of pre-training.
        original_max_position_embeddings: usize,
    },
}

/// Tokenizer and configuration files by name (`tokenizer.json`, `tokenizer_config.json`,
/// `config.json`, …), as a Hugging Face folder has them. Never weights.
pub type ModelFiles = BTreeMap<String, Vec<u8>>;

/// Read access to a checkpoint's tensors under their Hugging Face names
/// (`model.layers.0.self_attn.q_proj.weight`), whatever the file calls them.
pub trait TensorSource: Send {
    /// The tensor's extents, outermost first; `None` if there is no such tensor.
    fn shape(&self, name: &str) -> Option<Vec<usize>>;

    /// The tensor's elements, row-major, widened or dequantized to f32.
    fn read(&self, name: &str) -> Result<Vec<f32>, LoadError>;

    /// All names, sorted.
    fn names(&self) -> Vec<String>;
}

/// A model found on disk and checked: every tensor that its family needs is there with the right shape.
pub struct ModelSource {
    /// What it is made of.
    pub config: ModelConfig,
    /// Tokenizer and configuration files.
    pub files: ModelFiles,
    /// Its weights.
    pub tensors: Box<dyn TensorSource>,
}

/// Why a model cannot be loaded. The text names the file, key or tensor.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}")]
    Malformed {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The model asks for something that the runtime does not have.
    #[error("unsupported model: {0}")]
    Unsupported(String),
    /// A tensor that the family needs is absent.
    #[error("tensor {0} is missing")]
    MissingTensor(String),
    /// A tensor has other extents than the configuration implies.
    #[error("tensor {name} has shape {found:?}, expected {expected:?}")]
    WrongShape {
        /// Which.
        name: String,
        /// As stored.
        found: Vec<usize>,
        /// As configured.
        expected: Vec<usize>,
    },
}
