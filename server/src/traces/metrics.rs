//! Metrics of spans on their way to a collector.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

const EXPORTED: &str = "exported";
const FAILED: &str = "failed";
const DROPPED: &str = "dropped";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    outcome: &'static str,
}

/// The counters of spans. Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub struct TraceMetrics(Family<Of, Counter>);

impl TraceMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        // A counter that is there from the start shows its first increase.
        for outcome in [EXPORTED, FAILED, DROPPED] {
            drop(self.0.get_or_create(&Of { outcome }));
        }
        registry.register("trace_spans", "Spans that were exported, refused or not queued", self.0.clone());
    }

    /// Counts a span that found the queue full.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "counted only while exporting"))]
    pub(super) fn dropped(&self) {
        self.0.get_or_create(&Of { outcome: DROPPED }).inc();
    }

    /// Counts sent spans as accepted or refused.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "counted only while exporting"))]
    pub(super) fn exported(&self, spans: usize, taken: bool) {
        let outcome = if taken { EXPORTED } else { FAILED };
        self.0.get_or_create(&Of { outcome }).inc_by(spans as u64);
    }
}
