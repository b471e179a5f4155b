//! [`Backend`](crate::backend::Backend) on a GPU: [`Cuda`] calls the ops of this module's parent.
//!
//! - `elements.rs`: rows in the type of GEMMs. `weights.rs`: matrices, embeddings, vectors. `params.rs`: masters, moments, gradients.
//! - `rows.rs`: activations. `exchange.rs`, `fragments.rs`: exchanges between ranks. `linear.rs`, `low_rank.rs`: linear
//!   layers with adapters. `attention.rs`, `head.rs`, `sampling.rs`: these ops. `family.rs`, `latent.rs`, `vocabulary.rs`:
//!   ops of some families and layouts.
//! - `passes.rs`: memory and graphs of passes.
//! - `ops.rs`: each op of the trait, delegated to these.

mod attention;
mod elements;
mod embedding;
mod exchange;
mod family;
mod fragments;
mod gated;
mod head;
mod host_access;
mod indexer;
mod latent;
mod linear;
mod low_rank;
mod mixers;
mod ops;
mod params;
mod passes;
mod recurrence;
mod rows;
mod sampling;
mod states;
mod vision;
mod vocabulary;
mod weights;

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::device::cublaslt::MatmulLibrary;
use super::device::error::{CudaError, Result};
use super::device::open::CudaDevice;
use super::device::peers::LIMIT;
use super::ops::lora::RowIndices;
use super::ops::matmul::Matmul;
use super::ops::product::{MatmulPlan, WeightSide};
use super::ops::rows::RowElement;
use crate::backend::Dtype;
use crate::fault::{DeviceFault, Fault};

/// Tokens of the vocabulary, or outputs of a layer, that one GEMM computes.
const CHUNK: usize = 8192;

/// Variable of NVIDIA's libraries that, with the value 1, turns products in f32 into ones in TF32.
const TF32_OVERRIDE: &str = "NVIDIA_TF32_OVERRIDE";

/// A backend that runs on one GPU.
///
/// Ops of [`Backend`](crate::backend::Backend) return no errors. If the device refuses an op, the op panics with a
/// [`DeviceFault`], which the engine catches along with all other panics of a request. Too little memory fails the
/// requests of the pass, and the device stays usable. Every other error of the driver or of cuBLASLt is final: later
/// calls fail too, and [`Backend::failure`](crate::backend::Backend::failure) returns the error. The engine and its
/// worker then end as they do after a failed collective.
///
/// Differences from the contracts of the trait:
/// - A linear layer's products are summed from zero, and the residual is added to the sum.
/// - In bf16, the adapters' contribution is summed along the rank from zero and added to the residual (or is the
///   gradient of an input) before the GEMM adds its products. Where adapters cover only some of a layer's columns, it
///   is added to these products instead. [`Backend::linear`](crate::backend::Backend::linear) returns `z` rounded, and
///   `dz` is rounded too. Both sides of weight gradients are rounded, except for those of the unembedding and of its
///   adapters.
/// - Ranks exchange rows and gradients by NCCL once they are connected. From then on every error is final, including
///   too little memory, because the other ranks wait for this one.
pub struct Cuda {
    device: Arc<CudaDevice>,
    matmul: Matmul,
    /// Plans by extents, side and whether elements are bf16.
    plans: Mutex<BTreeMap<(usize, usize, bool, bool), MatmulPlan>>,
    /// Row indices of the adapters that the last pass used.
    row_indices: RowIndices,
    dtype: Dtype,
    chunk: usize,
    rank_limit: Duration,
}

impl Cuda {
    /// Opens device `ordinal`; `dtype` is the type of weights and of GEMM inputs.
    ///
    /// # Errors
    ///
    /// Fails if a library, the device, or something that the device needs is missing.
    pub fn open(ordinal: i32, dtype: Dtype) -> Result<Self> {
        Self::open_with(ordinal, dtype, None)
    }

    /// Like [`Self::open`], with the cuBLASLt of a path.
    ///
    /// # Errors
    ///
    /// Fails as [`Self::open`] does, and if the library of the path can't be used.
    pub fn open_with(ordinal: i32, dtype: Dtype, cublaslt: Option<&Path>) -> Result<Self> {
        Self::on(CudaDevice::open(ordinal, 0)?.with_cublaslt(cublaslt.map(Path::to_path_buf)), dtype)
    }

    /// A backend on a device that is already open.
    pub(super) fn on(device: CudaDevice, dtype: Dtype) -> Result<Self> {
        if dtype == Dtype::F32 && std::env::var(TF32_OVERRIDE).is_ok_and(|value| value.trim() == "1") {
            return Err(CudaError::Tf32Override);
        }
        let matmul = Matmul::new(&device)?;
        let (device, plans, row_indices) = (Arc::new(device), Mutex::default(), RowIndices::default());
        Ok(Self { device, matmul, plans, row_indices, dtype, chunk: CHUNK, rank_limit: LIMIT })
    }

    /// Sets the time that this rank waits for missing ranks.
    #[must_use]
    pub fn with_rank_limit(self, rank_limit: Duration) -> Self {
        Self { rank_limit, ..self }
    }

    /// Sets the width of output chunks, for tests.
    #[cfg(test)]
    pub(crate) fn with_chunk(self, chunk: usize) -> Self {
        Self { chunk, ..self }
    }

    /// Returns the cuBLASLt that computes the GEMMs.
    pub fn matmul_library(&self) -> &MatmulLibrary {
        self.matmul.library()
    }

    /// Returns the device that the backend runs on.
    pub fn gpu(&self) -> &CudaDevice {
        &self.device
    }

    /// How products with weights of these extents are computed: decided once.
    fn plan<T: RowElement>(&self, outputs: usize, inputs: usize, side: WeightSide) -> Result<MatmulPlan> {
        let key = (outputs, inputs, side == WeightSide::Inputs, size_of::<T>() < size_of::<f32>());
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&key) {
            return Ok(*plan);
        }
        let plan = self.matmul.plan::<T>(outputs, inputs, side)?;
        plans.insert(key, plan);
        Ok(plan)
    }

    /// The value that an op returned, or a panic that explains what the device refused.
    fn done<T>(&self, result: Result<T>) -> T {
        result.unwrap_or_else(|error| {
            match error {
                CudaError::Matmul { .. } => self.device.queue().lose(&error),
                _ => self.device.queue().refuse(&error),
            }
            refuse(&error)
        })
    }
}

/// Unwinds with an error of the device to where the engine catches panics of a request, which logs it.
fn refuse(error: &CudaError) -> ! {
    let fault = if matches!(error, CudaError::OutOfMemory { .. }) { Fault::OutOfMemory } else { Fault::Panic };
    resume_unwind(Box::new(DeviceFault { fault, message: error.to_string() }))
}

/// The value of a result, or a panic with a [`DeviceFault`]: [`Cuda::done`] for callers that have no backend.
fn done<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| refuse(&error))
}
