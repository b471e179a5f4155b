//! Bounds on training requests that wait: flags, the table `[queue]` of the file, and the defaults.

use std::num::NonZeroU64;

use clap::Args;
use serde::Deserialize;
use trainyard_scheduler::TrainingLimits;

use super::ConfigError;

/// Flags of what may wait to be trained.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct QueueFlags {
    /// Unfinished requests of a training run; further ones get 429 [default: 4096].
    #[arg(long, env = "TRAINYARD_MAX_RUN_QUEUED_REQUESTS", value_name = "N")]
    pub max_run_queued_requests: Option<u64>,
    /// Bytes of their payloads [default: 4294967296].
    #[arg(long, env = "TRAINYARD_MAX_RUN_QUEUED_BYTES", value_name = "BYTES")]
    pub max_run_queued_bytes: Option<u64>,
    /// Unfinished training requests of a tenant, unless its table in the file has another number [default: 32768].
    #[arg(long, env = "TRAINYARD_MAX_QUEUED_REQUESTS", value_name = "N")]
    pub max_queued_requests: Option<u64>,
    /// Bytes of their payloads [default: 17179869184].
    #[arg(long, env = "TRAINYARD_MAX_QUEUED_BYTES", value_name = "BYTES")]
    pub max_queued_bytes: Option<u64>,
    /// How far the seq_id of a training request may lie ahead of the first one that has not arrived; beyond, it gets 400
    /// [default: 4096].
    #[arg(long, env = "TRAINYARD_MAX_SEQ_GAP", value_name = "N")]
    pub max_seq_gap: Option<u64>,
}

/// The table `[queue]`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileQueue {
    max_run_queued_requests: Option<u64>,
    max_run_queued_bytes: Option<u64>,
    max_queued_requests: Option<u64>,
    max_queued_bytes: Option<u64>,
    max_seq_gap: Option<u64>,
}

/// The bounds of a tenant for which the file has no others.
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
