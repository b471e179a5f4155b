//! Handler of `GET /openapi.json`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use trainyard_http::answer::full_response;

use crate::state::AppState;

/// Returns this document. Needs no key.
#[utoipa::path(
    get, path = "/openapi.json", tag = "client", security(()),
    responses((status = 200, description = "the OpenAPI document", body = serde_json::Value)),
)]
pub(in crate::api) async fn openapi_json(State(state): State<AppState>) -> Response {
    full_response(StatusCode::OK, "application/json", state.openapi)
}
