//! The engine of Trainyard: model families, kernels, LoRA, losses, optimizers, the sampler and weight
//! files. It knows tensors and files; it knows no HTTP, no SQL and no tenants.

pub mod checkpoint;
pub mod config;
pub mod draw;
pub mod loss;
pub mod optim;
pub mod rng;
pub mod stop;
