//! Settings of an engine that do not come with a request.

use crate::backend::{Dtype, HostKernels};
use crate::blocks::PackedForm;
use crate::parallel::Parallel;

/// The form in which the weights of base models are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightStorage {
    /// The weights in the type [`EngineOptions::dtype`].
    #[default]
    Widened,
    /// Blocks of the file, for tensors in a [`BlockFormat`](crate::blocks::BlockFormat); others are dequantized when
    /// they are loaded. Kernels dequantize the blocks: results have the same bits as with dequantized weights. Runs of
    /// such a model train adapters only.
    Blocks,
    /// Blocks into which tensors are packed when they are loaded, unless the file has them in blocks already. Results
    /// have the bits of the packed values, dequantized. Runs of such a model train adapters only.
    Packed(PackedForm),
}

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Layout of the ranks that share the models.
    pub parallel: Parallel,
    /// Type of base weights and of the inputs of their GEMMs.
    pub dtype: Dtype,
    /// The form in which the weights of base models are held.
    pub weights: WeightStorage,
    /// Number of threads; 0 is one per core.
    pub threads: usize,
    /// Class of kernels. If it is `None`, or not supported by the processor, the best supported one is used.
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
    /// Samples per million that a training pass computes again, to verify that their log-probabilities have the same
    /// bits.
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
