//! Paths outside the API, which are described only here: `/metrics`, `/hf`, the index, the documentation and the
//! probes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use trainyard_wire::client::{ErrorBody, HealthResponse};

/// Descriptions of these paths.
#[derive(utoipa::OpenApi)]
#[openapi(paths(index, docs, docs_file, health, livez, readyz, metrics, hub))]
pub(super) struct Others;

/// Response body of `/`: the service, and the paths of its description and health.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct IndexResponse {
    /// Always the text `Trainyard`.
    name: String,
    /// Version of the program.
    version: String,
    /// Path of the Tinker API.
    api: String,
    /// Path of this document.
    openapi: String,
    /// Path of the page that shows this document.
    docs: String,
    /// Path of the console; absent if it is not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    console: Option<String>,
    /// Path that reports whether the models are loaded.
    health: String,
    /// Path that reports whether the process runs.
    liveness: String,
    /// Path that reports whether requests should be sent to this server.
    readiness: String,
}

/// Response body of `/readyz`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct ReadyResponse {
    /// `ok`, `degraded` while a disk is almost full, or `not ready`.
    status: String,
    /// Result of each check, by name: `ok` or the problem.
    checks: BTreeMap<String, String>,
}

/// A refusal in the form of the hub.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct HubError {
    /// Description of what was not found.
    error: String,
}

/// Returns the paths of the service's description and health. Clients that accept `text/html` get the console. Needs no
/// key.
#[utoipa::path(
    get, path = "/", tag = "operations", security(()),
    responses((status = 200, description = "success", content((IndexResponse = "application/json"), (String = "text/html")))),
)]
#[allow(dead_code, reason = "only its description is used")]
fn index() {}

/// Serves a page that shows this document and calls the API. Needs no key; the page asks for one before it calls the
/// API.
#[utoipa::path(
    get, path = "/docs/", tag = "operations", security(()),
    responses((status = 200, description = "the page", body = String, content_type = "text/html")),
)]
#[allow(dead_code, reason = "only its description is used")]
fn docs() {}

/// Serves a file that the page loads. Needs no key.
#[utoipa::path(
    get, path = "/docs/{file}", tag = "operations", security(()),
    params(("file" = String, Path)),
    responses(
        (status = 200, description = "the file",
            content((String = "text/html"), (String = "text/css"), (String = "text/javascript"), (inline(crate::api::Binary) = "image/png"))),
        (status = 400, description = "the path is not valid text", body = ErrorBody),
        (status = 404, description = "the page has no such file", body = ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn docs_file() {}

/// Returns whether the models are loaded. The same operation as `/api/v1/healthz`.
#[utoipa::path(
    get, path = "/healthz", tag = "operations", security(()),
    responses(
        (status = 200, description = "ready", body = HealthResponse),
        (status = 503, description = "the models are still loading", body = ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn health() {}

/// Returns whether the process runs. Needs no key.
#[utoipa::path(
    get, path = "/livez", tag = "operations", security(()),
    responses((status = 200, description = "the process runs", body = HealthResponse)),
)]
#[allow(dead_code, reason = "only its description is used")]
fn livez() {}

/// Returns whether requests should be sent to this server. The checks are store, schema, workers, storage, models,
/// shutdown and disk. Needs no key.
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses(
        (status = 200, description = "requests should be sent to this server", body = ReadyResponse),
        (status = 503, description = "requests should not be sent to this server", body = ReadyResponse),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn readyz() {}

/// Returns the process's metrics in the OpenMetrics format, for Prometheus. Open on loopback addresses, elsewhere
/// guarded by `--metrics-token`.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", security((), ("metrics_token" = [])),
    responses(
        (status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"),
        (status = 401, description = "the token is missing or wrong", body = ErrorBody),
        (status = 403, description = "the request came through a proxy", body = ErrorBody),
        (status = 404, description = "the metrics are not served here", body = ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn metrics() {}

/// Serves the protocol of the Hugging Face hub, for `HF_ENDPOINT=<server>/hf`: tokenizer and configuration files of the
/// served models, and their weights with `--hf-weights`. The path may have several segments. Requests for other models
/// are redirected to another hub.
#[utoipa::path(
    get, path = "/hf/{path}", tag = "operations", security((), ("api_key" = []), ("bearer" = [])),
    params(("path" = String, Path, description = "such as `<model>/resolve/main/tokenizer.json`")),
    responses(
        (status = 200, description = "the file, or the description of a model for `api/models/<model>`",
            content((serde_json::Value = "application/json"), (String = "text/plain"), (inline(crate::api::Binary) = "application/octet-stream"))),
        (status = 206, description = "the part of the file that `Range` asks for",
            content((inline(crate::api::Binary) = "application/json"), (inline(crate::api::Binary) = "text/plain"), (inline(crate::api::Binary) = "application/octet-stream"))),
        (status = 307, description = "redirect to another hub, which may have the file"),
        (status = 400, description = "the path is not valid text"),
        (status = 401, description = "a key is required, but missing or wrong", body = ErrorBody),
        (status = 416, description = "the range is outside the file, whose length is in `Content-Range`"),
        (status = 500, description = "the file can't be read"),
        (status = 404, description = "the repository, revision or file does not exist; `X-Error-Code` tells which", body = HubError),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn hub() {}
