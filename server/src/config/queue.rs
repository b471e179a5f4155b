//! Bounds on waiting training requests: flags, the table `[queue]` of the file, and the defaults.

use std::num::NonZeroU64;

use clap::Args;
use serde::Deserialize;
use trainyard_scheduler::TrainingLimits;

use super::{ConfigError, size};

/// Flags of the bounds on waiting training requests.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Queues")]
pub struct QueueFlags {
    /// Unfinished requests of a training run; further ones get 429 [default: 4096].
    #[arg(long, env = "TRAINYARD_MAX_RUN_QUEUED_REQUESTS", value_name = "N")]
    pub max_run_queued_requests: Option<u64>,
    /// Bytes of the payloads of a training run's unfinished requests [default: 4GiB].
    #[arg(long, env = "TRAINYARD_MAX_RUN_QUEUED_BYTES", value_name = "SIZE", value_parser = size::bytes::<u64>)]
    pub max_run_queued_bytes: Option<u64>,
    /// Unfinished training requests of a tenant, unless its table in the file has another number [default: 32768].
    #[arg(long, env = "TRAINYARD_MAX_QUEUED_REQUESTS", value_name = "N")]
    pub max_queued_requests: Option<u64>,
    /// Bytes of the payloads of a tenant's unfinished training requests [default: 16GiB].
    #[arg(long, env = "TRAINYARD_MAX_QUEUED_BYTES", value_name = "SIZE", value_parser = size::bytes::<u64>)]
    pub max_queued_bytes: Option<u64>,
    /// Largest distance of a training request's seq_id from the first one that is still missing; beyond, the request
    /// gets 400 [default: 4096].
    #[arg(long, env = "TRAINYARD_MAX_SEQ_GAP", value_name = "N")]
    pub max_seq_gap: Option<u64>,
    /// Unfinished samples of all tenants; each may have an equal share; further ones get 429 [default: 16384].
    #[arg(long, env = "TRAINYARD_MAX_QUEUED_SAMPLES", value_name = "N")]
    pub max_queued_samples: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileQueue {
    max_run_queued_requests: Option<u64>,
    #[serde(deserialize_with = "size::bytes_of_file")]
    max_run_queued_bytes: Option<u64>,
    max_queued_requests: Option<u64>,
    #[serde(deserialize_with = "size::bytes_of_file")]
    max_queued_bytes: Option<u64>,
    max_seq_gap: Option<u64>,
    max_queued_samples: Option<u64>,
}

/// Returns how many samples of all tenants may be unfinished, if flag or file set it.
pub(super) fn queued_samples(flags: QueueFlags, file: FileQueue) -> Result<Option<u64>, ConfigError> {
    match flags.max_queued_samples.or(file.max_queued_samples) {
        Some(0) => Err(ConfigError::Zero("max-queued-samples")),
        given => Ok(given),
    }
}

/// Returns the bounds of a tenant for which the file sets no others.
pub(super) fn resolve(flags: QueueFlags, file: FileQueue) -> Result<TrainingLimits, ConfigError> {
    let defaults = TrainingLimits::default();
    let bound = |name, given: Option<u64>, default| match given.map(NonZeroU64::new) {
        Some(None) => Err(ConfigError::Zero(name)),
        given => Ok(given.flatten().unwrap_or(default)),
    };
    Ok(TrainingLimits {
        run_requests: bound(
            "max-run-queued-requests",
            flags.max_run_queued_requests.or(file.max_run_queued_requests),
            defaults.run_requests,
        )?,
        run_bytes: bound(
            "max-run-queued-bytes",
            flags.max_run_queued_bytes.or(file.max_run_queued_bytes),
            defaults.run_bytes,
        )?,
        requests: bound(
            "max-queued-requests",
            flags.max_queued_requests.or(file.max_queued_requests),
            defaults.requests,
        )?,
        bytes: bound("max-queued-bytes", flags.max_queued_bytes.or(file.max_queued_bytes), defaults.bytes)?,
        seq_gap: bound("max-seq-gap", flags.max_seq_gap.or(file.max_seq_gap), defaults.seq_gap)?,
    })
}
