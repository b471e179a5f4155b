//! Handler of `POST admin/organisations`.

use axum::extract::State;
use trainyard_protocol::TenantId;
use trainyard_wire::admin::{CreateOrganisationRequest, Organisation};

use super::convert;
use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Creates an organisation; for admins of operators.
#[utoipa::path(
    post, path = "/api/v1/admin/organisations", tag = "administration", 
    request_body = CreateOrganisationRequest, responses((status = 200, description = "success", body = Organisation), Refusals),
)]
pub(in crate::api) async fn admin_create_organisation(
    State(state): State<AppState>,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<CreateOrganisationRequest>,
) -> Reply<Organisation> {
    if !caller.operator {
        return Err(ApiError::NotAllowed("only admins of an operator create organisations".to_owned()));
    }
    let directory = state.scheduler.directory();
    let created = directory.create_organisation(TenantId::new(request.name), request.operator).await?;
    Ok(Answer(convert::organisation(created)))
}
