//! Handler of `GET healthz`.

use axum::extract::State;
use trainyard_wire::client::{ErrorBody, HealthResponse};

use crate::api::request::respond::{Answer, Reply};
use crate::error::ApiError;
use crate::state::AppState;

/// Returns whether the models are loaded. Needs no key.
#[utoipa::path(
    get, path = "/api/v1/healthz", tag = "client", security(()),
    responses(
        (status = 200, description = "ready", body = HealthResponse),
        (status = 503, description = "the models are still loading", body = ErrorBody),
    ),
)]
pub(in crate::api) async fn healthz(State(state): State<AppState>) -> Reply<HealthResponse> {
    if state.is_ready() { Ok(Answer(HealthResponse { status: "ok".to_owned() })) } else { Err(ApiError::NotReady) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn it_waits_for_the_models_and_needs_no_key() {
        let server = Server::start().await;
        let ask = || Request::get("/api/v1/healthz").body(Body::empty()).unwrap();
        server.send(ask()).await.refused(503);
        server.state.set_ready();
        assert_eq!(server.send(ask()).await.text("status"), "ok");
    }
}
