//! The nouns that the server, the scheduler and the runtime agree on.
//!
//! This crate holds ids, operations with their results, error categories, limits and the [`Engine`]
//! trait. It knows no clock, no executor, no database, no HTTP and no tensor library.

mod engine;
mod error;
mod ids;
pub mod limits;
mod ops;
mod results;
mod tensor;

pub use engine::{BaseModel, Completion, Engine, EngineStats, Flow};
pub use error::{Category, OpError};
pub use ids::{CheckpointKind, CheckpointName, RequestId, RunId, SamplingSessionId, SessionId, TenantId, TinkerPath};
pub use ops::{
    AdamParams, Ahead, Datum, ForwardBackward, LoadState, LoraSpec, LossConfig, LossConfigValue, Operation, Optimizer,
    RestoreRun, RunSpec, Sample, SamplerSource, SamplingParams, SaveExternal, SaveRun, SaveSampler, SaveSnapshot,
    SaveState, SaveTarget, Stop,
};
pub use results::{
    DatumOutput, ForwardBackwardResult, OpResult, PromptAltTokens, SampleResult, SampledSequence, SavedFiles,
    StopReason, TopkLogprobs,
};
pub use tensor::{Tensor, TensorValues};
