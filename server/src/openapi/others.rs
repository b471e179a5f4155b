//! Paths beside the API, which are described here alone: `/metrics` and `/hf`.

/// Their descriptions.
#[derive(utoipa::OpenApi)]
#[openapi(paths(metrics, hub))]
pub(super) struct Others;

/// What the process counts, in the OpenMetrics format, for Prometheus. Open on loopback, elsewhere guarded by
/// `--metrics-token`.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", security((), ("metrics_token" = [])),
    responses(
        (status = 200, description = "the metrics", body = String, content_type = "application/openmetrics-text"),
        (status = 401, description = "the token is missing or wrong", body = crate::wire::client::ErrorBody),
        (status = 403, description = "a proxy passed the request on", body = crate::wire::client::ErrorBody),
        (status = 404, description = "the metrics are not served here", body = crate::wire::client::ErrorBody),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn metrics() {}

/// The protocol of the Hugging Face hub, for `HF_ENDPOINT=<server>/hf`: tokenizer and configuration files of the served
/// models, and their weights with `--hf-weights`. The path may have several segments. What this server does not have is redirected to another hub.
#[utoipa::path(
    get, path = "/hf/{path}", tag = "operations", security((), ("api_key" = []), ("bearer" = [])),
    params(("path" = String, Path, description = "such as `<model>/resolve/main/tokenizer.json`")),
    responses(
        (status = 200, description = "the file", body = inline(super::Binary), content_type = "application/octet-stream"),
        (status = 206, description = "the part of it that `Range` asks for", body = inline(super::Binary),
            content_type = "application/octet-stream"),
        (status = 307, description = "another hub may have it"),
        (status = 401, description = "a key is required and missing or wrong", body = crate::wire::client::ErrorBody),
        (status = 404, description = "there is no such repository, revision or file; `X-Error-Code` says which"),
    ),
)]
#[allow(dead_code, reason = "only its description is used")]
fn hub() {}
