//! Metrics of training requests.

use std::collections::BTreeMap;

use super::{NewRunSample, Tokens};
use crate::{RequestKind, Timestamp};

/// Recorded metric of a pass: its `loss:sum` divided by the sum of the weights of its targets.
pub const LOSS_PER_TOKEN: &str = "loss:per_weighted_token";

/// Recorded metric of an optimizer step: its learning rate.
pub const LEARNING_RATE: &str = "learning_rate";

/// Usage and measurements of a request, recorded together with its success.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Tokens used, by kind of use.
    pub used: Tokens,
    /// Metrics of a training request, by the names that the client sees, with [`LOSS_PER_TOKEN`] or [`LEARNING_RATE`];
    /// `None` for other requests.
    pub metrics: Option<BTreeMap<String, f64>>,
    /// Content of a sample to store, if its run asked for that.
    pub sample: Option<NewRunSample>,
}

impl From<Tokens> for Measured {
    fn from(used: Tokens) -> Self {
        Self { used, ..Self::default() }
    }
}

/// The metrics of a training request.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMetrics {
    /// Optimizer steps of the run before this request: an `optim_step` has the same step as the passes before it.
    pub step: i64,
    /// Position of the request in the run's order.
    pub seq_id: i64,
    /// Kind of the request: `Forward`, `ForwardBackward` or `OptimStep`.
    pub kind: RequestKind,
    /// Time when the request ended.
    pub at: Timestamp,
    /// Values by metric name; `None` for a number that is not finite.
    pub values: BTreeMap<String, Option<f64>>,
}

/// Bounds for reading a run's metrics, both inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsRange {
    /// First and last step.
    pub steps: (i64, i64),
    /// Earliest and latest end of a request.
    pub times: (Timestamp, Timestamp),
}

impl MetricsRange {
    /// The range of all steps and times.
    pub const ALL: Self = Self { steps: (0, i64::MAX), times: (Timestamp(i64::MIN), Timestamp(i64::MAX)) };
}

/// A point of a curve: optimizer steps of the run before the request, end of the request in ms since the epoch, and the
/// value, `None` for a number that is not finite.
pub type MetricPoint = (i64, i64, Option<f64>);

/// The curve of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricCurve {
    /// Kind of the requests: `Forward`, `ForwardBackward` or `OptimStep`.
    pub kind: RequestKind,
    /// Name of the metric.
    pub metric: String,
    /// Points in the order of the requests.
    pub points: Vec<MetricPoint>,
}

/// The curves of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCurves {
    /// Number of requests that contributed.
    pub requests: u64,
    /// First step of which all requests' metrics are kept: earlier ones are thinned out if the run has very many.
    pub complete_from: i64,
    /// Curves, ordered by the name of the kind, then by that of the metric.
    pub curves: Vec<MetricCurve>,
}
