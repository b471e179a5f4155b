//! `GET admin/organisations/{organisation}/limits`.

use axum::extract::State;

use super::super::extract::ApiPath;
use super::super::respond::{Answer, Reply};
use super::{limits, organisation};
use crate::auth::Caller;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::limits::LimitsResponse;

/// The weight and the quotas of an organisation, and where each is set.
#[utoipa::path(
    get, path = "/api/v1/admin/organisations/{organisation}/limits", tag = "administration",
    params(("organisation" = String, Path)),
    responses((status = 200, description = "done", body = LimitsResponse), Refusals),
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
