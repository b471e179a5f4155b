//! Devices: those of [`trainyard_backend`], and NVIDIA GPUs.

#[cfg(any(test, feature = "cuda"))]
pub mod cuda;
#[cfg(test)]
mod tests;

pub use trainyard_backend::*;
