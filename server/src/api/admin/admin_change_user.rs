//! Handler of `PUT admin/users/{email}`.

use axum::extract::State;
use trainyard_wire::admin::{ChangeUserRequest, OrganisationQuery, User};

use super::{convert, organisation};
use crate::api::request::body::JsonBody;
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Changes a user's role, or disables or enables the user. The keys of a disabled user are refused.
#[utoipa::path(
    put, path = "/api/v1/admin/users/{email}", tag = "administration", params(("email" = String, Path), OrganisationQuery),
    request_body = ChangeUserRequest, responses((status = 200, description = "success", body = User), Refusals),
)]
pub(in crate::api) async fn admin_change_user(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiPath(email): ApiPath<String>,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
    JsonBody(request): JsonBody<ChangeUserRequest>,
) -> Reply<User> {
    let organisation = organisation(&caller, query.organisation)?;
    let role = request.role.as_deref().map(convert::role).transpose()?;
    let changed = state.scheduler.directory().change_user(organisation, email, role, request.disabled).await?;
    Ok(Answer(convert::user(changed)))
}
