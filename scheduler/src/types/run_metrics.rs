//! What training requests measured.

use std::collections::BTreeMap;

use super::{NewRunSample, Tokens};
use crate::{RequestKind, Timestamp};

/// What a request used and measured, recorded together with its success.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Tokens, by what was done with them.
    pub used: Tokens,
    /// Metrics of a training request, by the names that the client sees; none for other requests.
    pub metrics: Option<BTreeMap<String, f64>>,
    /// What is stored of a sample for its run, where that asked for it.
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
    /// Optimizer steps of the run before this request: an `optim_step` has the step of the passes before it.
    pub step: i64,
    /// Place of the request in the run's order.
    pub seq_id: i64,
    /// `Forward`, `ForwardBackward` or `OptimStep`.
    pub kind: RequestKind,
    /// When it ended.
    pub at: Timestamp,
    /// By name; `None` for a number that is not finite.
    pub values: BTreeMap<String, Option<f64>>,
}

/// Which of a run's metrics to read: those from one bound to another, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsRange {
    /// First and last step.
    pub steps: (i64, i64),
    /// First and last end of a request.
    pub times: (Timestamp, Timestamp),
}

impl MetricsRange {
    /// Of all steps and times.
    pub const ALL: Self = Self { steps: (0, i64::MAX), times: (Timestamp(i64::MIN), Timestamp(i64::MAX)) };
}

/// A point of a curve: optimizer steps of the run before the request, its end in ms since the epoch, and the value; `None`
/// for a number that is not finite.
pub type MetricPoint = (i64, i64, Option<f64>);

/// The curve of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricCurve {
    /// `Forward`, `ForwardBackward` or `OptimStep`.
    pub kind: RequestKind,
    /// Its name.
    pub metric: String,
    /// In the order of the requests.
    pub points: Vec<MetricPoint>,
}

/// The curves of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCurves {
    /// Requests that they are of.
    pub requests: u64,
    /// By the name of the kind, then by the metric's.
    pub curves: Vec<MetricCurve>,
}
