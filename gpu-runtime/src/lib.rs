//! The engine of Trainyard: model families, kernels, LoRA, losses, optimizers, the sampler and weight
//! files. It knows tensors and files; it knows no HTTP, no SQL and no tenants.

pub mod checkpoint;
pub mod config;
pub mod draw;
mod engine;
pub mod kernels;
pub mod load;
pub mod loss;
pub mod memory;
pub mod model;
pub mod optim;
pub mod rng;
pub mod stop;

pub use engine::{CpuEngine, EngineOptions};
pub use kernels::packed::Dtype;
