//! Paths beside the API, which are described here alone: `/metrics`, `/hf`, and what says what the server is and how it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use trainyard_wire::client::{ErrorBody, HealthResponse};

/// Their descriptions.
#[derive(utoipa::OpenApi)]
#[openapi(paths(index, docs, docs_file, health, livez, readyz, metrics, hub))]
pub(super) struct Others;

/// Answer of `/`: what this is, and where its description and its health are.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct IndexResponse {
    /// `Trainyard`.
    name: String,
    /// Of the program.
    version: String,
    /// Where the Tinker API is.
    api: String,
    /// Where this document is.
    openapi: String,
    /// Where it is shown as a page.
    docs: String,
    /// Where the console is; absent where it is not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    console: Option<String>,
    /// Where to ask whether the models are loaded.
    health: String,
    /// Where to ask whether the process runs.
    liveness: String,
    /// Where to ask whether requests should be sent here.
    readiness: String,
}

/// Answer of `/readyz`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct ReadyResponse {
    /// `ok`, `degraded` while a disk is almost full, or `not ready`.
    status: String,
    /// `ok` or what is wrong, by check.
    checks: BTreeMap<String, String>,
}

/// A refusal as the hub writes it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct HubError {
    /// What there is none of.
    error: String,
}

/// What this is, and where its description and its health are; the console's page for who accepts `text/html`. Needs no key.
#[utoipa::path(
    get, path = "/", tag = "operations", security(()),
    responses((status = 200, description = "done", content((IndexResponse = "application/json"), (String = "text/html")))),
)]
#[allow(dead_code, reason = "only its description is used")]
fn index() {}

/// This document as a page to read and to try out. Needs no key; the page asks for one to call the API with.
#[utoipa::path(
    get, path = "/docs/", tag = "operations", security(()),
    responses((status = 200, description = "the page", body = String, content_type = "text/html")),
)]
#[allow(dead_code, reason = "only its description is used")]
fn docs() {}

/// A file that the page loads. Needs no key.
#[utoipa::path(
    get, path = "/docs/{file}", tag = "operations", security(()),
    params(("file" = String, Path)),
    responses(
        (status = 200, description = "the file",
            content((String = "text/html"), (String = "text/css"), (String = "text/javascript"), (inline(crate::api::Binary) = "image/png"))),
        (status = 400, description = "the path is no text", body = ErrorBody),
        (status = 404, description = "the page has no such file", body = ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn docs_file() {}

/// Whether the models are loaded. The same operation as that under `/api/v1/healthz`.
#[utoipa::path(
    get, path = "/healthz", tag = "operations", security(()),
    responses(
        (status = 200, description = "ready", body = HealthResponse),
        (status = 503, description = "the models are still loading", body = ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn health() {}

/// Whether the process runs. Needs no key.
#[utoipa::path(
    get, path = "/livez", tag = "operations", security(()),
    responses((status = 200, description = "it runs", body = HealthResponse)),
)]
#[allow(dead_code, reason = "only its description is used")]
fn livez() {}

/// Whether requests should be sent here, by check: store, schema, workers, storage, models, shutdown and disk. Needs no key.
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses(
        (status = 200, description = "they should", body = ReadyResponse),
        (status = 503, description = "they should not", body = ReadyResponse),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn readyz() {}

/// What the process counts, in the OpenMetrics format, for Prometheus. Open on loopback, elsewhere guarded by
/// `--metrics-token`.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", security((), ("metrics_token" = [])),
    responses(
        (status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"),
        (status = 401, description = "the token is missing or wrong", body = ErrorBody),
        (status = 403, description = "a proxy passed the request on", body = ErrorBody),
        (status = 404, description = "the metrics are not served here", body = ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn metrics() {}

/// The protocol of the Hugging Face hub, for `HF_ENDPOINT=<server>/hf`: tokenizer and configuration files of the served
/// models, and their weights with `--hf-weights`. The path may have several segments. What this server does not have is
/// redirected to another hub.
#[utoipa::path(
    get, path = "/hf/{path}", tag = "operations", security((), ("api_key" = []), ("bearer" = [])),
    params(("path" = String, Path, description = "such as `<model>/resolve/main/tokenizer.json`")),
    responses(
        (status = 200, description = "the file, or what `api/models/<model>` says of a model",
            content((serde_json::Value = "application/json"), (String = "text/plain"), (inline(crate::api::Binary) = "application/octet-stream"))),
        (status = 206, description = "the part of the file that `Range` asks for",
            content((inline(crate::api::Binary) = "application/json"), (inline(crate::api::Binary) = "text/plain"), (inline(crate::api::Binary) = "application/octet-stream"))),
        (status = 307, description = "another hub may have it"),
        (status = 400, description = "the path is no text"),
        (status = 401, description = "a key is required and missing or wrong", body = ErrorBody),
        (status = 416, description = "the file has no such part; `Content-Range` says how long it is"),
        (status = 500, description = "the file can't be read"),
        (status = 404, description = "there is no such repository, revision or file; `X-Error-Code` says which", body = HubError),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn hub() {}
