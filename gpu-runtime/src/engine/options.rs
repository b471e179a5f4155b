//! How an engine computes: the settings that do not come with a request.

use crate::backend::{Dtype, HostKernels};
use crate::blocks::PackedForm;
use crate::parallel::Parallel;

/// The form in which the weights of base models are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightStorage {
    /// The type of the weights, [`EngineOptions::dtype`].
    #[default]
    Widened,
    /// Blocks as in the file, where it has a format of [`BlockFormat`](crate::blocks::BlockFormat); other tensors are widened.
    /// Kernels dequantize them: results have the bits of the widened weights. Runs of such a model train adapters only.
    Blocks,
    /// Blocks that tensors are packed in when they are loaded, unless the file has them in blocks already. Results have the bits
    /// of the packed values, widened. Runs of such a model train adapters only.
    Packed(PackedForm),
}

/// How an engine computes.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How ranks share the models.
    pub parallel: Parallel,
    /// Type of base weights and of the inputs of their GEMMs.
    pub dtype: Dtype,
    /// The form in which the weights of base models are held.
    pub weights: WeightStorage,
    /// Threads; 0 is one per core.
    pub threads: usize,
    /// Class of kernels; the best one that the processor has where it is `None`, or one that the processor does not have.
    pub kernels: Option<HostKernels>,
    /// Budget in bytes for everything that the engine holds; unlimited when `None`. The budgets below are parts of it.
    pub memory_bytes: Option<usize>,
    /// Budget in bytes of keys and values, for samples and the prefix cache together. Runs may leave less of it.
    pub kv_bytes: usize,
    /// Rows of a microbatch; when `None`, as many as suit the backend. A longer example is a microbatch of its own.
    /// Results do not depend on it. Passes that train a run whose parameters replicas divide use a fixed number of
    /// rows, on which results depend.
    pub microbatch_tokens: Option<usize>,
    /// Budget in bytes of a training pass. Microbatches shrink to fit; a single example that exceeds it saves fewer
    /// activations and recomputes the others, which changes no bit. An example that exceeds it even so is computed
    /// nevertheless.
    pub activation_bytes: usize,
    /// Limit in bytes of cached sampler checkpoints; the one used last is always cached.
    pub checkpoint_bytes: usize,
    /// Limit in bytes of cached embeddings of images; those that requests use stay beyond it.
    pub image_cache_bytes: usize,
    /// Samples of a million that a training pass computes again, to see that their log-probabilities have the same bits.
    pub verified_per_million: u32,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            parallel: Parallel::default(),
            dtype: Dtype::Bf16,
            weights: WeightStorage::Widened,
            threads: 0,
            kernels: None,
            memory_bytes: None,
            kv_bytes: 2 << 30,
            microbatch_tokens: None,
            activation_bytes: 1 << 30,
            checkpoint_bytes: 1 << 30,
            image_cache_bytes: 256 << 20,
            verified_per_million: 0,
        }
    }
}

impl EngineOptions {
    /// Options of each rank: an equal part of all budgets.
    pub(super) fn of_rank(&self) -> Self {
        let part = |bytes: usize| bytes / self.parallel.world();
        Self {
            memory_bytes: self.memory_bytes.map(part),
            kv_bytes: part(self.kv_bytes),
            activation_bytes: part(self.activation_bytes),
            checkpoint_bytes: part(self.checkpoint_bytes),
            ..self.clone()
        }
    }
}
