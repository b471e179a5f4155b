//! Sampler weights that are saved without a name: flags and the table `[sampler_snapshots]` of the file.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;

/// Flags of how long they stay in the storage.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct SnapshotFlags {
    /// Sampler weights saved without a name that stay in the storage in any case: the last ones used, so many of a run
    /// [default: 8].
    #[arg(long, env = "TRAINYARD_SAMPLER_SNAPSHOTS", value_name = "N")]
    pub sampler_snapshots: Option<usize>,
    /// Others stay for so long after they were saved or last sampled from [default: 600].
    #[arg(long, env = "TRAINYARD_SAMPLER_SNAPSHOT_SECONDS", value_name = "SECONDS")]
    pub sampler_snapshot_seconds: Option<u64>,
}

/// The table `[sampler_snapshots]`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileSnapshots {
    kept: Option<usize>,
    seconds: Option<u64>,
}

/// How long they stay in the storage; the scheduler's defaults where `None`.
#[derive(Clone, Copy, Debug)]
pub struct SamplerSnapshots {
    /// So many of a run in any case.
    pub kept: Option<usize>,
    /// The others after their last use.
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
