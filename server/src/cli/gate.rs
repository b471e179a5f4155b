//! Answers before the models are loaded: the listener is open, and every endpoint answers 503 until the API takes
//! over, or 429 where clients repeat a 503 without a pause.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tower::ServiceExt;

use crate::error::json_response;

/// The API, once it is ready. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<OnceLock<Router>>);

impl Gate {
    /// Serves `api` from now on. Only the first call counts.
    pub(super) fn open(&self, api: Router) {
        if self.0.set(api).is_err() {
            tracing::error!("the API was already being served");
        }
    }

    /// The router that the listener serves.
    pub(super) fn router(&self) -> Router {
        Router::new().fallback(pass).with_state(self.clone())
    }
}

async fn pass(State(gate): State<Gate>, request: Request) -> Response {
    match gate.0.get() {
        Some(api) => match api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        // The process is alive while it loads models.
        None if request.uri().path() == "/livez" => json_response(StatusCode::OK, &json!({ "status": "ok" })),
        None => {
            let body = json!({ "status": "loading", "detail": "the models are still loading" });
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

    async fn status(gate: &Gate, path: &str) -> StatusCode {
        let request = Request::get(path).body(Body::empty()).unwrap();
        gate.router().oneshot(request).await.unwrap().status()
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
