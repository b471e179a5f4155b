//! Types that the server, the scheduler and the runtime share.
//!
//! This crate contains ids, operations with their results, error categories, limits and the [`Engine`] trait. It
//! depends on no clock, executor, database, HTTP or tensor library.

mod base_model;
mod controls;
pub mod custom_loss;
mod engine;
mod error;
mod head;
mod hex;
mod ids;
mod images;
pub mod limits;
mod lora;
mod loss;
mod memory;
mod numerics;
mod ops;
mod prepared;
mod progress;
mod results;
mod sampling;
mod tensor;

pub use base_model::BaseModel;
pub use controls::{CallMarks, SamplingControls};
pub use engine::{Completion, Engine, EngineStats, IsAbandoned, TenantShare};
pub use error::{Category, OpError, redacted};
pub use head::ModelHead;
pub use hex::hex;
pub use ids::{
    AgentSessionId, CheckpointKind, CheckpointName, CustomLossId, RequestId, RunId, SamplingSessionId, SessionId,
    TenantId, TinkerPath, UploadId,
};
pub use images::{DecodedImages, Image, ImageDigest, ImageSpan, PreparedImage, Vision};
pub use lora::LoraSpec;
pub use loss::{ClipRange, LossConfig, LossConfigValue, LossFn};
pub use memory::{MemoryPlan, MemoryUse, PlanMemory, RunMemory, Unbounded};
pub use numerics::Numerics;
pub use ops::{
    AdamParams, ForwardBackward, LoadState, Operation, Optimizer, RestoreRun, RunSpec, SaveExternal, SaveRun,
    SaveSampler, SaveSnapshot, SaveState, SaveTarget, UploadedAdapter,
};
pub use prepared::{
    Datum, ModelExtents, PolicyInputs, Prepare, PreparedBatch, PreparedContent, PreparedDatum, RawBatch, ValueInputs,
};
pub use progress::SampleProgress;
pub use results::{
    DatumOutput, ForwardBackwardResult, OpResult, PromptAltTokens, SampleResult, SampledSequence, SavedFiles,
    StopReason, TopkLogprobs,
};
pub use sampling::{PromptTargets, Sample, SampleOperation, SamplerSource, SamplingParams, SparseIndices, Stop};
pub use tensor::{Tensor, TensorValues};
