//! Runs, checkpoints, their files and their metrics.

pub(super) mod checkpoint_delete;
pub(super) mod checkpoint_publish;
pub(super) mod checkpoint_ttl;
pub(super) mod checkpoint_unpublish;
pub(super) mod checkpoints;
pub(super) mod checkpoints_search;
pub(super) mod download;
pub(super) mod external_weights_urls;
pub(crate) mod measured;
pub(super) mod run_checkpoints;
pub(super) mod training_run;
pub(super) mod training_runs;

pub(super) use self::measured::{metrics_export, run_metrics};
