//! Traces in a build without the feature `otlp`: none are recorded, and an endpoint for them is refused.

#[path = "traces/answered.rs"]
mod answered;
#[path = "traces/metrics.rs"]
mod metrics;

use trainyard_scheduler::Executed;

pub(crate) use self::answered::AnsweredCall;
pub use self::metrics::TraceMetrics;
use crate::features;
use crate::random::Random;

/// A recorder of spans that records nothing. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces;

/// The reason why traces can't be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The build can't export.
    #[error("--otlp-endpoint: {0}")]
    NotInBuild(features::NotInBuild),
}

impl Traces {
    /// Refuses every endpoint.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &str, _: TraceMetrics, _: Random) -> Result<Self, TracesError> {
        Err(TracesError::NotInBuild(features::OTLP))
    }

    /// Returns whether spans are exported.
    pub fn is_on(&self) -> bool {
        false
    }

    /// Returns at once, since nothing waits.
    pub async fn close(&self) {}

    pub(crate) fn call(&self, _: AnsweredCall<'_>) {}

    pub(crate) fn executed(&self, _: Executed<'_>) {}
}
