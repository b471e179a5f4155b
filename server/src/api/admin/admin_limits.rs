//! Handler of `GET admin/organisations/{organisation}/limits`.

use axum::extract::State;
use trainyard_wire::limits::LimitsResponse;

use super::{limits, organisation};
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Returns the weight and the quotas of an organisation, and where each one is set.
#[utoipa::path(
    get, path = "/api/v1/admin/organisations/{organisation}/limits", tag = "administration",
    params(("organisation" = String, Path)),
    responses((status = 200, description = "success", body = LimitsResponse), Refusals),
)]
pub(in crate::api) async fn admin_limits(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiPath(name): ApiPath<String>,
) -> Reply<LimitsResponse> {
    let name = organisation(&caller, Some(name))?;
    let stored = state.scheduler.directory().limits(&name).await?;
    Ok(Answer(limits::response(&name, &state.scheduler.policies(), &stored)))
}
