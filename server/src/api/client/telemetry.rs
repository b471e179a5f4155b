//! Handler of `POST telemetry`.

use trainyard_wire::client::{TelemetryRequest, TelemetryResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};

/// Accepts a client's events and discards them.
#[utoipa::path(
    post, path = "/api/v1/telemetry", tag = "client", request_body = TelemetryRequest,
    responses((status = 200, description = "success", body = TelemetryResponse), Refusals),
)]
pub(in crate::api) async fn telemetry(JsonBody(request): JsonBody<TelemetryRequest>) -> Reply<TelemetryResponse> {
    tracing::debug!(session = %request.session_id, events = request.events.len(), "telemetry");
    Ok(Answer(TelemetryResponse::accepted()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn the_answer_is_exactly_accepted() {
        let server = Server::start().await;
        let body =
            json!({"events": [{"event": "SESSION_START"}], "platform": "x", "sdk_version": "1", "session_id": "s"});
        assert_eq!(server.post("telemetry", body).await.json(), json!({"status": "accepted"}));
    }
}
