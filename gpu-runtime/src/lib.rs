//! The engine of Trainyard: model families, devices, LoRA, losses, optimizers, the sampler and weight files. It knows
//! tensors and files; it knows no HTTP, no SQL and no tenants.

pub mod backend;
mod byte_chars;
mod checkpoint;
pub mod config;
mod copy_on_write;
#[cfg(any(test, feature = "cuda"))]
mod cuda_engine;
mod engine;
#[cfg_attr(not(feature = "grammar"), path = "grammar_missing.rs")]
mod grammar;
pub mod load;
pub mod loss;
mod model;
pub mod plan;
mod runs;
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
use trainyard_backend::parallel;
pub use trainyard_backend::{blocks, collective, memory, rng};
use trainyard_backend::{fault, interrupt, sampling};
