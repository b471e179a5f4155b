//! `training_runs/{run_id}/metrics`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which of a run's metrics are asked for.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MetricsFilter {
    /// Names, separated by commas; all when absent.
    #[serde(default)]
    pub metrics: Option<String>,
    /// Of requests of one kind: `forward`, `forward_backward` or `optim_step`.
    #[param(pattern = "^(forward|forward_backward|optim_step)$")]
    #[serde(default)]
    pub kind: Option<String>,
    /// First step.
    #[param(minimum = 0)]
    #[serde(default, deserialize_with = "number")]
    pub from_step: Option<i64>,
    /// Last step.
    #[param(minimum = 0)]
    #[serde(default, deserialize_with = "number")]
    pub to_step: Option<i64>,
    /// Of requests that ended at this time or later, RFC 3339.
    #[serde(default)]
    pub from_time: Option<String>,
    /// Of requests that ended at this time or earlier, RFC 3339.
    #[serde(default)]
    pub to_time: Option<String>,
}

/// How the points of a curve are thinned out.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CurveQuery {
    /// Most points of each series. Of more, the smallest and the largest value of each stretch are returned.
    #[param(minimum = 10, maximum = 10_000, default = 1_000)]
    #[serde(default, deserialize_with = "number")]
    pub points: Option<u32>,
    /// What the stretches divide evenly: `step` or `time`.
    #[param(pattern = "^(step|time)$")]
    #[serde(default)]
    pub by: Option<String>,
}

/// Query of `training_runs/{run_id}/metrics/export`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// `jsonl` or `parquet`.
    #[param(pattern = "^(jsonl|parquet)$", default = "jsonl")]
    #[serde(default)]
    pub format: Option<String>,
}

/// Reads a number of a query, which is text.
fn number<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| D::Error::custom(format!("{text:?} is not a whole number from 0")))
}

/// Answer of `training_runs/{run_id}/metrics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricsResponse {
    /// The run.
    pub training_run_id: String,
    /// Requests in the range, of all kinds that were asked for.
    pub requests: u64,
    /// A curve for each kind of request and metric, in this order.
    pub series: Vec<MetricSeries>,
}

/// The curve of a metric: three lists of the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricSeries {
    /// Its name, as results have it.
    pub metric: String,
    /// `forward`, `forward_backward` or `optim_step`.
    #[schema(pattern = "^(forward|forward_backward|optim_step)$")]
    pub kind: String,
    /// Values in the range; more than the lists have if these were thinned out.
    pub recorded: u64,
    /// Optimizer steps of the run before the request.
    pub steps: Vec<i64>,
    /// When the request ended, in ms since the epoch.
    pub times: Vec<i64>,
    /// The values; null where a number was not finite.
    pub values: Vec<Option<f64>>,
}

/// A line of `metrics/export` in the format `jsonl`, and of the console's events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricsLine {
    /// Optimizer steps of the run before the request.
    pub step: i64,
    /// Place of the request in the run's order.
    pub seq_id: i64,
    /// `forward`, `forward_backward` or `optim_step`.
    pub kind: String,
    /// When the request ended, RFC 3339.
    #[schema(format = DateTime)]
    pub time: String,
    /// By name; null where a number was not finite.
    pub metrics: BTreeMap<String, Option<f64>>,
}
