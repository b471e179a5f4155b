//! Handler of `DELETE admin/keys/{key_id}`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_wire::admin::OrganisationQuery;

use super::organisation;
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::Refusals;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Revokes an API key: every server refuses it from now on.
#[utoipa::path(
    delete, path = "/api/v1/admin/keys/{key_id}", tag = "administration", params(("key_id" = i64, Path), OrganisationQuery),
    responses((status = 204, description = "revoked"), Refusals),
)]
pub(in crate::api) async fn admin_revoke_key(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiPath(key_id): ApiPath<i64>,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
) -> Result<StatusCode, ApiError> {
    let organisation = organisation(&caller, query.organisation)?;
    state.scheduler.directory().revoke_key(organisation, key_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
