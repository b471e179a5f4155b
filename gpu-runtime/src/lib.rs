//! The engine of Trainyard: model families, devices, LoRA, losses, optimizers, the sampler and weight files. It knows
//! tensors and files; it knows no HTTP, no SQL and no tenants.

pub mod backend;
pub mod blocks;
mod byte_chars;
mod checkpoint;
pub mod collective;
pub mod config;
mod copy_on_write;
#[cfg(any(test, feature = "cuda"))]
mod cuda_engine;
mod engine;
mod fault;
#[cfg_attr(not(feature = "grammar"), path = "grammar_missing.rs")]
mod grammar;
mod interrupt;
pub mod load;
pub mod loss;
pub mod memory;
mod model;
mod parallel;
pub mod plan;
pub mod rng;
mod runs;
mod sampling;
mod stop;
mod tensor_source;
pub mod tokenizer;
mod tokenizer_file;
mod vision;

pub use backend::Dtype;
pub use checkpoint::{merge, write_for_peft};
#[cfg(any(test, feature = "cuda"))]
pub use cuda_engine::CudaEngine;
pub use engine::{
    ConfiguredParts, CpuEngine, Engine, EngineOptions, FetchDone, FetchFailure, FolderCopies, FollowError,
    MAX_SEQUENCES, ParallelEngine, ProcessRank, RankFolders, WeightStorage, block_formats,
};
pub use parallel::{LayoutError, Parallel, ParallelError, ZeroStage};
