//! `POST telemetry`.

use super::body::JsonBody;
use super::respond::{Answer, Reply};
use crate::openapi::Refusals;
use crate::wire::client::{TelemetryRequest, TelemetryResponse};

/// Takes a client's events and keeps none of them.
#[utoipa::path(
    post, path = "/api/v1/telemetry", tag = "client", request_body = TelemetryRequest,
    responses((status = 200, body = TelemetryResponse), Refusals),
)]
pub(super) async fn telemetry(JsonBody(request): JsonBody<TelemetryRequest>) -> Reply<TelemetryResponse> {
    tracing::debug!(session = %request.session_id, events = request.events.len(), "telemetry");
    Ok(Answer(TelemetryResponse::accepted()))
}
