//! The workload that is planned.

use std::collections::BTreeMap;

use trainyard_protocol::LoraSpec;

use crate::backend::{Dtype, HostKernels};
use crate::blocks::BlockFormat;

/// The workload that is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Type of weights and of the inputs of GEMMs.
    pub dtype: Dtype,
    /// Formats of the base weights that stay in blocks on a host, by name (see [`block_formats`](crate::block_formats)).
    pub blocks: BTreeMap<String, BlockFormat>,
    /// Kernels of a host; the best that the processor supports if `None`.
    pub kernels: Option<HostKernels>,
    /// The adapter that a run trains; `None` trains all parameters.
    pub lora: Option<LoraSpec>,
    /// Number of tokens of a microbatch on each replica.
    pub microbatch_tokens: usize,
    /// Number of microbatches of a step on each replica.
    pub microbatches: usize,
    /// Number of tokens of a sequence.
    pub context: usize,
    /// Sequences that each replica samples at a time.
    pub sequences: usize,
}
