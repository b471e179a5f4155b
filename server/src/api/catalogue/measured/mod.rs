//! Metrics of a run's training requests, as curves and as files.

mod columns;
mod curve;
mod range;

pub(in crate::api) mod metrics_export;
pub(in crate::api) mod run_metrics;

use trainyard_scheduler::RunMetrics;

use trainyard_wire::run_metrics::MetricsLine;
use trainyard_wire::timestamp::rfc3339;

/// Converts a row to the form of the API.
pub(crate) fn line(row: RunMetrics) -> MetricsLine {
    MetricsLine {
        step: row.step,
        seq_id: row.seq_id,
        kind: row.kind.as_str().to_owned(),
        time: rfc3339(row.at.as_millis()),
        metrics: row.values,
    }
}
