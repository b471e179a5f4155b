//! `POST client/config`.

use super::body::JsonBody;
use super::respond::{Answer, Reply};
use crate::openapi::Refusals;
use crate::wire::client::{ClientConfigRequest, ClientConfigResponse};

/// Settings that the server chooses for a client.
#[utoipa::path(
    post, path = "/api/v1/client/config", tag = "client", request_body = ClientConfigRequest,
    responses((status = 200, body = ClientConfigResponse), Refusals),
)]
pub(super) async fn client_config(JsonBody(_request): JsonBody<ClientConfigRequest>) -> Reply<ClientConfigResponse> {
    Ok(Answer(ClientConfigResponse::default()))
}
