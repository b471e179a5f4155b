//! A base model in memory.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use trainyard_protocol::{BaseModel, OpError};

use crate::config::{LoadError, ModelConfig, ModelFiles, ModelSource, TensorSource};
use crate::kernels::Cpu;
use crate::kernels::packed::Dtype;
use crate::kernels::rope::Rope;
use crate::model::{Gradients, ParamLayout, Weights};
use crate::stop::Detokenizer;

/// A base model: packed weights, shared by every run and sampler on it.
pub(super) struct Base {
    pub(super) name: String,
    pub(super) config: Arc<ModelConfig>,
    pub(super) layout: Arc<ParamLayout>,
    pub(super) rope: Arc<Rope>,
    pub(super) dtype: Dtype,
    pub(super) weights: Arc<Weights>,
    pub(super) files: ModelFiles,
    pub(super) detokenizer: Option<Arc<Detokenizer>>,
    /// For full-parameter runs, which start from the unrounded weights.
    tensors: Mutex<Box<dyn TensorSource>>,
}

impl Base {
    pub(super) fn new(cpu: &Cpu, name: String, source: ModelSource, dtype: Dtype) -> Result<Self, LoadError> {
        let config = Arc::new(source.config);
        let layout = Arc::new(ParamLayout::new(&config));
        let rope = Arc::new(Rope::new(&config.rope, config.head_dim, config.max_position_embeddings));
        let mut read = |i: usize| source.tensors.read(&layout.specs[i].name).map(Cow::Owned);
        let weights = Weights::build(cpu, &config, &layout, &rope, dtype, &mut read)?;
        let detokenizer = source.files.get("tokenizer.json").map(|json| Detokenizer::from_json(json)).transpose()?;
        Ok(Self {
            name,
            weights: Arc::new(weights),
            config,
            layout,
            rope,
            dtype,
            files: source.files,
            detokenizer: detokenizer.map(Arc::new),
            tensors: Mutex::new(source.tensors),
        })
    }

    pub(super) fn describe(&self) -> BaseModel {
        BaseModel {
            name: self.name.clone(),
            arch: self.config.arch.name().to_owned(),
            max_context_length: self.config.max_position_embeddings,
            vocab_size: self.config.vocab_size,
            parameters: self.layout.len() as u64,
        }
    }

    /// All parameters in f32, as the files have them.
    pub(super) fn read_masters(&self) -> Result<Gradients, OpError> {
        let tensors = self.tensors.lock().unwrap_or_else(PoisonError::into_inner);
        self.layout
            .specs
            .iter()
            .map(|spec| tensors.read(&spec.name))
            .collect::<Result<_, _>>()
            .map_err(|error| OpError::server(format!("base model {} cannot be read: {error}", self.name)))
    }

    /// Packs other parameters of the same model.
    pub(super) fn pack(&self, cpu: &Cpu, masters: &Gradients) -> Result<Weights, OpError> {
        let mut read = |i: usize| Ok(Cow::Borrowed(&masters[i][..]));
        Weights::build(cpu, &self.config, &self.layout, &self.rope, self.dtype, &mut read)
            .map_err(|error| OpError::server(error.to_string()))
    }
}
