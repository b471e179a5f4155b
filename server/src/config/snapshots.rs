//! Sampler weights that are saved without a name: flags and the table `[sampler_snapshots]` of the file.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;

/// Flags of the lifetime of sampler weights that are saved without a name.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Lifetimes")]
pub struct SnapshotFlags {
    /// Number of a run's unnamed sampler weights that always stay in the storage: those used last [default: 8].
    #[arg(long, env = "TRAINYARD_SAMPLER_SNAPSHOTS", value_name = "N")]
    pub sampler_snapshots: Option<usize>,
    /// Seconds for which older unnamed sampler weights stay after they were saved or last sampled from [default: 600].
    #[arg(long, env = "TRAINYARD_SAMPLER_SNAPSHOT_SECONDS", value_name = "SECONDS")]
    pub sampler_snapshot_seconds: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileSnapshots {
    kept: Option<usize>,
    seconds: Option<u64>,
}

/// The lifetime of unnamed sampler weights in the storage; the scheduler's defaults where `None`.
#[derive(Clone, Copy, Debug)]
pub struct SamplerSnapshots {
    /// The number of weights of a run that always stay.
    pub kept: Option<usize>,
    /// The time for which others stay after their last use.
    pub retention: Option<Duration>,
}

impl SamplerSnapshots {
    pub(super) fn resolve(flags: SnapshotFlags, file: FileSnapshots) -> Self {
        Self {
            kept: flags.sampler_snapshots.or(file.kept),
            retention: flags.sampler_snapshot_seconds.or(file.seconds).map(Duration::from_secs),
        }
    }
}
