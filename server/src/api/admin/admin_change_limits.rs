//! Handler of `PUT admin/organisations/{organisation}/limits`.

use axum::extract::State;
use trainyard_wire::limits::{ChangeLimitsRequest, LimitsResponse};

use super::{limits, organisation};
use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Sets and unsets the weight and the quotas of an organisation; for admins of operators. Absent fields keep their
/// values, and `null` unsets a limit. Every server enforces the new limits within a second; requests that were accepted
/// or started earlier are not affected. A limit that the configuration file sets can't be changed.
#[utoipa::path(
    put, path = "/api/v1/admin/organisations/{organisation}/limits", tag = "administration",
    params(("organisation" = String, Path)), request_body = ChangeLimitsRequest,
    responses((status = 200, description = "success", body = LimitsResponse), Refusals),
)]
pub(in crate::api) async fn admin_change_limits(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiPath(name): ApiPath<String>,
    JsonBody(request): JsonBody<ChangeLimitsRequest>,
) -> Reply<LimitsResponse> {
    let name = organisation(&caller, Some(name))?;
    if !caller.operator {
        return Err(ApiError::NotAllowed("only admins of an operator change limits".to_owned()));
    }
    let stored = state.scheduler.directory().change_limits(name.clone(), limits::changes(&request)?).await?;
    Ok(Answer(limits::response(&name, &state.scheduler.policies(), &stored)))
}
