//! The foundation of a backend for NVIDIA GPUs: the device, its memory, kernels, and ops on rows. It does not implement
//! [`Backend`](super::Backend) yet, so no engine can use it; `docs/cuda.md` says what is here, and that nothing of it ever ran on
//! a GPU.
//!
//! Compiled in tests, and with the cargo feature `cuda`: the binary does without. Libraries of CUDA are opened when a device is,
//! and a machine without them gets a [`CudaError`]. Nothing panics: extents that do not fit together are errors, before anything is
//! launched.
//!
//! - `driver.rs`: calls of the driver on one device and one stream. All ops run on it, in the order in which they are called.
//! - `memory.rs`: an [`Arena`] of device memory and typed [`Slice`]s of it.
//! - `kernels.rs`: PTX, as `make kernels` compiles it from `kernels/`, and checked launches.
//! - `device.rs`: a [`CudaDevice`] joins these; `rows.rs`: rows on it.
//! - The other files: ops, each with its gradient. Contracts are those of the ops of [`Backend`](super::Backend) with these names.
//!   The order of a row's sums depends on its width alone.

mod activation;
mod attention;
mod device;
mod driver;
mod embedding;
mod error;
mod head;
mod kernels;
mod library;
mod lora;
mod matmul;
mod memory;
mod norm;
mod optimizer;
mod rotary;
mod rows;
mod sampling;
mod squares;

#[cfg(test)]
mod tests;

pub use activation::{activate, activate_backward};
pub use attention::{DeviceAttention, DeviceKvPool, DeviceSpans, attention, attention_backward, kv_write};
pub use device::CudaDevice;
pub use embedding::{embed, embed_backward};
pub use error::CudaError;
pub use head::{DeviceTargets, Head, head_backward, target_logprobs};
pub use lora::{DeviceAdapter, LoraTable, OuterProduct, WeightColumns, outer_products};
pub use matmul::{Matmul, MatmulPlan, WeightSide};
pub use memory::{Arena, Slice};
pub use norm::{DeviceNorm, add_norm, norm, norm_backward};
pub use optimizer::{DeviceStep, adamw};
pub use rotary::{DeviceRotation, HeadNorms, rotate, rotate_backward};
pub use rows::{DeviceRows, RowElement};
pub use sampling::{DeviceRequest, SampleCounter, Sampled, sample, uniforms};
pub use squares::{add, squared_norms};

/// Result of calls of this module.
pub type Result<T = ()> = std::result::Result<T, CudaError>;
