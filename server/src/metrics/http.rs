//! Requests by endpoint and status.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the buckets in seconds; polls are held open for half a minute.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 45.0];
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    endpoint: Endpoint,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    endpoint: Endpoint,
}

/// A path as in the table of endpoints, with placeholders instead of ids, so that ids don't become labels.
pub(super) type Endpoint = Arc<str>;

/// The metrics of requests to the API.
#[derive(Debug)]
pub(super) struct HttpMetrics {
    requests: Family<Answered, Counter>,
    seconds: Family<Of, Histogram>,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self { requests: Family::default(), seconds }
    }
}

impl HttpMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Answered requests to the API", self.requests.clone());
        registry.register("http_request_seconds", "Time to answer a request to the API", self.seconds.clone());
    }

    /// Counts an answer to a request, and the time that it took.
    pub(super) fn add(&self, method: &'static str, endpoint: Endpoint, status: u16, took: Duration) {
        self.seconds.get_or_create(&Of { endpoint: Arc::clone(&endpoint) }).observe(took.as_secs_f64());
        self.requests.get_or_create(&Answered { method, endpoint, status }).inc();
    }
}
