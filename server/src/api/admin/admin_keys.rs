//! Handler of `GET admin/keys`.

use axum::extract::State;
use trainyard_wire::admin::{KeysResponse, OrganisationQuery};

use super::{convert, organisation};
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Lists the API keys of an organisation, including expired and revoked ones.
#[utoipa::path(
    get, path = "/api/v1/admin/keys", tag = "administration", params(OrganisationQuery),
    responses((status = 200, description = "success", body = KeysResponse), Refusals),
)]
pub(in crate::api) async fn admin_keys(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
) -> Reply<KeysResponse> {
    let organisation = organisation(&caller, query.organisation)?;
    let found = state.scheduler.directory().keys(&organisation).await?;
    Ok(Answer(KeysResponse { keys: found.into_iter().map(convert::key).collect() }))
}
