//! `GET /` and `GET /docs`: what this is, for whoever opens the address in a browser.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::error::json_response;

/// Names the service and where its description and its health are. Needs no key.
pub(super) async fn index() -> Response {
    let body = json!({
        "name": "Trainyard",
        "version": env!("CARGO_PKG_VERSION"),
        "api": "/api/v1",
        "openapi": "/openapi.json",
        "health": "/api/v1/healthz",
        "liveness": "/livez",
        "readiness": "/readyz",
    });
    json_response(StatusCode::OK, &body)
}
