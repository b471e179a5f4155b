//! `GET /`: the console for browsers, and a description of the service for programs.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;
use trainyard_http::answer::json_response;

use super::console;
use crate::state::AppState;

/// Names the service and the paths of its description and health; serves the console's page to browsers. Needs no key.
pub(crate) async fn index(State(state): State<AppState>, headers: HeaderMap) -> Response {
    if state.console && accepts_pages(&headers) {
        return console::page(&state, &headers).await;
    }
    let mut body = json!({
        "name": "Trainyard",
        "version": env!("CARGO_PKG_VERSION"),
        "api": "/api/v1",
        "openapi": "/openapi.json",
        "docs": "/docs/",
        "health": "/api/v1/healthz",
        "liveness": "/livez",
        "readiness": "/readyz",
    });
    if state.console {
        body["console"] = json!("/");
    }
    let mut response = json_response(StatusCode::OK, &body);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Returns whether the client is a browser: browsers list the types that they show, programs accept anything.
pub(super) fn accepts_pages(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| range.trim().starts_with("text/html"))
}
