//! NVIDIA GPUs: the device, its memory, kernels, ops on rows, and [`Cuda`], which implements [`Backend`](super::Backend) with them.
//! `docs/operators/cuda.md` describes the backend. It has never run on a GPU; it is tested only on a simulated driver.
//!
//! Compiled in tests, and with the cargo feature `cuda`. CUDA's libraries are opened together with a device; a machine
//! without them gets a [`CudaError`]. Ops do not panic: extents that do not fit together are errors, before any launch.
//! [`Cuda`] turns errors into panics, as the trait requires.
//!
//! Each layer imports only the layers below it:
//!
//! - `backend/`: the implementation of the trait.
//! - `ops/`: ops on rows, each with its gradient. Contracts are those of the ops of [`Backend`](super::Backend) with these names.
//!   The order of a row's sums depends only on its width.
//! - `kernels.rs`: the loaded kernels and checked launches; `kernels/`: their sources, which `make kernels` compiles to `ptx/` and `cubin/`.
//! - `device/`: the driver, memory, copies and libraries. All ops run on one stream, in the order of the calls; copies to the
//!   host run on another, ordered after it by events and fences. `open.rs` joins these to a [`CudaDevice`].

mod backend;
mod device;
mod kernels;
mod ops;

#[cfg(test)]
pub(crate) mod tests;

pub use backend::Cuda;
pub use device::cublaslt::MatmulLibrary;
pub use device::error::CudaError;
pub use device::facts::{DeviceRates, measure_rates, open_libraries};
pub use device::nccl::Nccl;
pub use device::open::CudaDevice;
pub use ops::exchange_rates::{ExchangeRates, measure_exchanges};
