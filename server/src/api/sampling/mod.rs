//! Sampling sessions and samples.

pub(super) mod asample;
pub(super) mod create_sampling_session;
pub(super) mod join_sampling_session;
pub(super) mod sampler;
