//! Handler of `PUT admin/organisations/{organisation}`.

use axum::extract::State;
use trainyard_wire::admin::{ChangeOrganisationRequest, Organisation};

use super::{convert, organisation};
use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Changes an organisation's display name, or disables or enables it. Absent fields keep their values. Every server
/// answers the keys and tokens of a disabled organisation with 401 within a second. Its sessions expire, which cancels
/// waiting requests and all samples; its objects stay. Only admins of operators can disable and enable organisations,
/// but not their own.
#[utoipa::path(
    put, path = "/api/v1/admin/organisations/{organisation}", tag = "administration", params(("organisation" = String, Path)),
    request_body = ChangeOrganisationRequest, responses((status = 200, description = "success", body = Organisation), Refusals),
)]
pub(in crate::api) async fn admin_change_organisation(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiPath(name): ApiPath<String>,
    JsonBody(request): JsonBody<ChangeOrganisationRequest>,
) -> Reply<Organisation> {
    let name = organisation(&caller, Some(name))?;
    if request.disabled.is_some() && !caller.operator {
        return Err(ApiError::NotAllowed("only admins of an operator disable and enable organisations".to_owned()));
    }
    if request.disabled == Some(true) && name == caller.tenant {
        return Err(ApiError::invalid("disabled: an organisation can't disable itself"));
    }
    let directory = state.scheduler.directory();
    let changed = directory.change_organisation(name, request.display_name, request.disabled).await?;
    Ok(Answer(convert::organisation(changed)))
}
