//! Sampling: `create_sampling_session`, `samplers` and `asample`. Requests are JSON; results are protobuf.

mod controls;
mod decode;
mod request;
mod result;
mod sessions;
mod stop;
mod targets;

pub use controls::LogitBias;
pub use decode::{SampleOutput, decode_result};
pub use request::{SampleRequest, SamplingParams};
pub use result::{ComputedWith, computed_with, encode_result};
pub use sessions::{
    CreateSamplingSessionRequest, CreateSamplingSessionResponse, JoinSamplingSessionRequest,
    JoinSamplingSessionResponse, SamplerResponse,
};
pub use stop::StopBody;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
