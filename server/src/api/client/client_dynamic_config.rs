//! Handler of `POST client/dynamic_config`.

use trainyard_wire::client::{ClientConfigRequest, ClientDynamicConfigResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};

/// Returns settings that a client polls periodically.
#[utoipa::path(
    post, path = "/api/v1/client/dynamic_config", tag = "client", request_body = ClientConfigRequest,
    responses((status = 200, description = "success", body = ClientDynamicConfigResponse), Refusals),
)]
pub(in crate::api) async fn client_dynamic_config(
    JsonBody(_request): JsonBody<ClientConfigRequest>,
) -> Reply<ClientDynamicConfigResponse> {
    Ok(Answer(ClientDynamicConfigResponse::default()))
}
