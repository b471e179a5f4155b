//! Metrics of a run: `training_runs/{run_id}/metrics`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects metrics of a run.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MetricsFilter {
    /// Names of metrics, separated by commas; all by default.
    #[serde(default)]
    pub metrics: Option<String>,
    /// Kind of the requests: `forward`, `forward_backward` or `optim_step`; all by default.
    #[param(pattern = "^(forward|forward_backward|optim_step)$")]
    #[serde(default)]
    pub kind: Option<String>,
    /// First step to include.
    #[param(minimum = 0)]
    #[serde(default, deserialize_with = "number")]
    pub from_step: Option<i64>,
    /// Last step to include.
    #[param(minimum = 0)]
    #[serde(default, deserialize_with = "number")]
    pub to_step: Option<i64>,
    /// Earliest time at which the requests ended, in RFC 3339.
    #[serde(default)]
    pub from_time: Option<String>,
    /// Latest time at which the requests ended, in RFC 3339.
    #[serde(default)]
    pub to_time: Option<String>,
}

/// How the points of a curve are thinned out.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CurveQuery {
    /// Maximum number of points per series. Longer series are divided into intervals, of which the smallest and the
    /// largest value are returned.
    #[param(minimum = 10, maximum = 10_000, default = 1_000)]
    #[serde(default, deserialize_with = "number")]
    pub points: Option<u32>,
    /// Axis that the intervals divide evenly: `step` (the default) or `time`.
    #[param(pattern = "^(step|time)$")]
    #[serde(default)]
    pub by: Option<String>,
}

/// Query parameters of `training_runs/{run_id}/metrics/export`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// File format: `jsonl` (the default) or `parquet`.
    #[param(pattern = "^(jsonl|parquet)$", default = "jsonl")]
    #[serde(default)]
    pub format: Option<String>,
}

/// Reads a number in a query, which arrives as text.
fn number<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| D::Error::custom(format!("{text:?} is not a whole number from 0")))
}

/// Response body of `training_runs/{run_id}/metrics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricsResponse {
    /// Id of the run.
    pub training_run_id: String,
    /// Number of requests in the range, of all kinds that were selected.
    pub requests: u64,
    /// First step from which no metrics were thinned out: 0 up to 750,000 requests.
    pub complete_from_step: i64,
    /// Curves, ordered by kind of request and then by metric.
    pub series: Vec<MetricSeries>,
}

/// Curve of a metric: three lists of the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricSeries {
    /// Name of the metric, as in results.
    pub metric: String,
    /// Kind of the requests: `forward`, `forward_backward` or `optim_step`.
    #[schema(pattern = "^(forward|forward_backward|optim_step)$")]
    pub kind: String,
    /// Number of values in the range, which is larger than the lists if they were thinned out.
    pub recorded: u64,
    /// Number of optimizer steps of the run before each request.
    pub steps: Vec<i64>,
    /// Time at which each request ended, in milliseconds since 1970.
    pub times: Vec<i64>,
    /// Values of the metric; null for a number that was not finite.
    pub values: Vec<Option<f64>>,
}

/// A line of `metrics/export` in the format `jsonl`, and of the console's events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricsLine {
    /// Number of optimizer steps of the run before the request.
    pub step: i64,
    /// Position of the request in the run's order.
    pub seq_id: i64,
    /// Kind of the request: `forward`, `forward_backward` or `optim_step`.
    pub kind: String,
    /// Time at which the request ended, in RFC 3339.
    #[schema(format = DateTime)]
    pub time: String,
    /// Metrics by name; null for a number that was not finite.
    pub metrics: BTreeMap<String, Option<f64>>,
}
