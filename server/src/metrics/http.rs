//! Requests by endpoint and status.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Metrics;
use crate::calls::Call;
use crate::traces::{AnsweredCall, Traces};

/// Upper bounds of the buckets in seconds; polls are held open for half a minute.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 45.0];
/// The label of paths that the API does not have.
const UNMATCHED: &str = "unmatched";

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
}

/// Counts an answer of the API, records it, and logs a refusal.
pub(crate) async fn count(
    State(metrics): State<Arc<Metrics>>,
    State(traces): State<Traces>,
    request: Request,
    next: Next,
) -> Response {
    let (started, began) = (Instant::now(), SystemTime::now());
    let (call, path) = (request.extensions().get::<Call>().cloned(), request.uri().path().to_owned());
    let method = method(request.method());
    let endpoint = request.extensions().get::<MatchedPath>().map_or(UNMATCHED, MatchedPath::as_str);
    let endpoint: Endpoint = endpoint.into();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    metrics
        .http
        .seconds
        .get_or_create(&Of { endpoint: Arc::clone(&endpoint) })
        .observe(started.elapsed().as_secs_f64());
    if status >= 400 {
        metrics.refusals.log(method, &endpoint, &response, call.as_ref(), started);
    }
    if let Some(call) = &call {
        traces.call(AnsweredCall { call, method, route: &endpoint, path, status, started: began });
    }
    metrics.http.requests.get_or_create(&Answered { method, endpoint, status }).inc();
    response
}

/// Returns the label of a method. Clients may invent methods, which must not become labels.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}
