//! NVIDIA GPUs: the device, its memory, kernels, ops on rows, and [`Cuda`], which implements [`Backend`](super::Backend) with them.
//! `docs/cuda.md` says what is here, and that nothing of it ever ran on a GPU.
//!
//! Compiled in tests, and with the cargo feature `cuda`. Libraries of CUDA are opened when a device is, and a machine without them
//! gets a [`CudaError`]. Ops do not panic: extents that do not fit together are errors, before anything is launched. [`Cuda`] makes
//! panics of them, as the trait says.
//!
//! - `driver.rs`: calls of the driver on one device. All ops run on one stream, in the order in which they are called; `reads.rs`: copies
//!   to the host on another one, which `event.rs` and `fence.rs` order after it; `uploads.rs`: copies to the device; `page_locked.rs`:
//!   their memory, which `transfers.rs` has.
//! - `memory.rs`: an [`Arena`] of device memory and typed [`Slice`]s of it.
//! - `queue.rs`: work on that stream, which `work.rs` describes; `graphs.rs`: CUDA graphs for passes that repeat.
//! - `sources.rs`: PTX and machine code, as `make kernels` compiles them from `kernels/`; `cubins.rs`: which machine code a device runs;
//!   `kernels.rs`: all of it loaded, and checked launches.
//! - `device.rs`: a [`CudaDevice`] joins these; `rows.rs`: rows on it; `facts.rs`: its libraries and its rates.
//! - `backend/`: the implementation of the trait.
//! - The other files: ops, each with its gradient. Contracts are those of the ops of [`Backend`](super::Backend) with these names.
//!   The order of a row's sums depends on its width alone.

mod activation;
mod attention;
mod attention_tiles;
mod backend;
mod bias;
mod combine;
mod copies;
mod cubins;
mod device;
mod driver;
mod element;
mod embedding;
mod error;
mod event;
mod facts;
mod fence;
mod graphs;
mod head;
mod kernels;
mod latent;
mod library;
mod logits;
mod lora;
mod matmul;
mod memory;
mod nccl;
mod norm;
mod optimizer;
mod outer;
mod page_locked;
mod peers;
mod product;
mod queue;
mod ranks;
mod reads;
mod rotary;
mod routing;
mod rows;
mod sampling;
mod scalar_head;
mod sinks;
mod sources;
mod squares;
mod tensor_attention;
mod transfers;
mod uploads;
mod vocabulary;
mod work;

#[cfg(test)]
pub(crate) mod tests;

pub use activation::{activate, activate_backward, activate_backward_rounded};
pub use attention::{DeviceAttention, DeviceKvPool, DeviceSpans, attention, attention_backward, kv_write};
pub use attention_tiles::has_tensor_attention;
pub use backend::Cuda;
pub use bias::{add_bias, bias_backward};
pub use combine::{combine, combine_backward};
pub use copies::{gather, part_of_rows, round_bf16, scatter, shift};
pub use cubins::KernelCode;
pub use device::CudaDevice;
pub use embedding::{embed, embed_backward};
pub use error::CudaError;
pub use facts::{DeviceRates, measure_rates, open_libraries};
pub use fence::Fence;
pub use head::{DeviceLogSums, DeviceTargets, LogitChunk, logit_gradient};
pub use latent::{
    DeviceLatentRotation, add_rows, columns, head_values, join_columns, join_heads, pad_values, split_heads,
};
pub use logits::{change_logits, sample_tokens, score, score_part};
pub use lora::{DeviceAdapter, LoraLayer, LoraTable, RowIndices};
pub use matmul::Matmul;
pub use memory::{Arena, Slice};
pub use nccl::{Nccl, NcclId};
pub use norm::{DeviceNorm, add_norm, norm, norm_backward};
pub use optimizer::{DeviceStep, adamw};
pub use outer::{OuterProducts, OuterRows, OuterSide};
pub use product::{MatmulPlan, WeightSide};
pub use ranks::DeviceRanks;
pub use rotary::{DeviceRotation, HeadNorms, rotate, rotate_backward, rotate_backward_rounded};
pub use routing::{route, route_backward};
pub use rows::{Addend, DeviceRows, RowElement};
pub use sampling::{DeviceLogits, DeviceRequest, SampleCounter, Sampled, sample, uniforms};
pub use scalar_head::{DeviceScalarHead, scalar_head, scalar_head_backward};
pub use sinks::{add_sinks, sinks_backward};
pub use squares::{add, add_part, squared_norms};
pub use tensor_attention::{tensor_attention, tensor_attention_backward};
pub use vocabulary::{join_logits, spread};

/// Result of calls of this module.
pub type Result<T = (), E = CudaError> = std::result::Result<T, E>;
