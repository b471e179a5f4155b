//! Answers before the models are loaded: the listener is open, and every endpoint answers 503 until the API takes over,
//! or 429 where clients retry a 503 without a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{self, Request};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tower::ServiceExt;
use trainyard_http::answer::json_response;

/// The API, once it is ready. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<State>);

#[derive(Default)]
struct State {
    api: OnceLock<Router>,
    /// Whether no worker has registered a model yet, which this process waits for.
    waits_for_worker: AtomicBool,
}

impl Gate {
    /// Serves `api` from now on. Only the first call counts.
    pub(super) fn open(&self, api: Router) {
        if self.0.api.set(api).is_err() {
            tracing::error!("the API was already being served");
        }
    }

    /// Answers from now on that a worker is missing.
    pub(super) fn wait_for_worker(&self) {
        self.0.waits_for_worker.store(true, Ordering::Relaxed);
    }

    /// The reason why the API is not served yet.
    fn reason(&self) -> &'static str {
        match self.0.waits_for_worker.load(Ordering::Relaxed) {
            true => "no worker has registered a model yet: start `trainyard worker` with a model, on the same database",
            false => "the models are still loading",
        }
    }

    /// The router that the listener serves.
    pub(super) fn router(&self) -> Router {
        Router::new().fallback(pass).with_state(self.clone())
    }
}

async fn pass(extract::State(gate): extract::State<Gate>, request: Request) -> Response {
    match gate.0.api.get() {
        Some(api) => match api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        // The process is alive while it loads models.
        None if request.uri().path() == "/livez" => json_response(StatusCode::OK, &json!({ "status": "ok" })),
        None => {
            let body = json!({ "status": "loading", "detail": gate.reason() });
            let polls = request.uri().path().ends_with("/retrieve_future");
            let status = if polls { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
            ([(RETRY_AFTER, "1")], json_response(status, &body)).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::routing::get;

    use super::*;

    async fn get_of(gate: &Gate, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).unwrap();
        gate.router().oneshot(request).await.unwrap()
    }

    async fn status(gate: &Gate, path: &str) -> StatusCode {
        get_of(gate, path).await.status()
    }

    #[tokio::test]
    async fn says_what_it_waits_for() {
        let gate = Gate::default();
        let detail = async || {
            let body = get_of(&gate, "/api/v1/healthz").await.into_body();
            let body: serde_json::Value =
                serde_json::from_slice(&axum::body::to_bytes(body, 1_000).await.unwrap()).unwrap();
            body["detail"].as_str().unwrap().to_owned()
        };
        assert_eq!(detail().await, "the models are still loading");
        gate.wait_for_worker();
        assert!(detail().await.starts_with("no worker has registered a model yet: start `trainyard worker`"));
    }

    #[tokio::test]
    async fn says_503_until_it_opens() {
        let gate = Gate::default();
        assert_eq!(status(&gate, "/api/v1/healthz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&gate, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&gate, "/livez").await, StatusCode::OK);
        assert_eq!(status(&gate, "/api/v1/retrieve_future").await, StatusCode::TOO_MANY_REQUESTS);
        gate.open(Router::new().route("/api/v1/healthz", get(|| async { "ok" })));
        assert_eq!(status(&gate, "/api/v1/healthz").await, StatusCode::OK);
    }
}
