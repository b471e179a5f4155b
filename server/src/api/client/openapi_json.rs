//! `GET /openapi.json`.

use axum::http::StatusCode;
use axum::response::Response;

use crate::error::{ApiError, full_response};
use crate::openapi;

/// This document. Needs no key.
#[utoipa::path(
    get, path = "/openapi.json", tag = "client", security(()),
    responses((status = 200, description = "the OpenAPI document", body = serde_json::Value)),
)]
pub(in crate::api) async fn openapi_json() -> Result<Response, ApiError> {
    let text = openapi::json().map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(full_response(StatusCode::OK, "application/json", text.into()))
}
