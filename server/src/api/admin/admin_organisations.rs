//! Handler of `GET admin/organisations`.

use axum::extract::State;
use trainyard_wire::admin::OrganisationsResponse;

use super::convert;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Lists the organisations that the caller manages.
#[utoipa::path(
    get, path = "/api/v1/admin/organisations", tag = "administration", 
    responses((status = 200, description = "success", body = OrganisationsResponse), Refusals),
)]
pub(in crate::api) async fn admin_organisations(
    State(state): State<AppState>,
    Caller(caller): Caller,
) -> Reply<OrganisationsResponse> {
    let mut found = state.scheduler.directory().organisations().await?;
    found.retain(|organisation| caller.operator || organisation.name == caller.tenant);
    Ok(Answer(OrganisationsResponse { organisations: found.into_iter().map(convert::organisation).collect() }))
}
