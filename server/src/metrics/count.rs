//! Counts the answers of the API.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::Metrics;
use super::http::Endpoint;
use crate::calls::Call;
use crate::traces::{AnsweredCall, Traces};

/// The label of paths that the API does not have.
const UNMATCHED: &str = "unmatched";

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
    metrics.http.add(method, Arc::clone(&endpoint), status, started.elapsed());
    if status >= 400 {
        metrics.refusals.log(method, &endpoint, &response, call.as_ref(), started);
    }
    if let Some(call) = &call {
        traces.call(AnsweredCall { call, method, route: &endpoint, path, status, started: began });
    }
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
