//! Handler of `POST admin/users`.

use axum::extract::State;
use trainyard_scheduler::{NewUser, Role};
use trainyard_wire::admin::{CreateUserRequest, OrganisationQuery, User};

use super::{convert, organisation};
use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Creates a user in an organisation.
#[utoipa::path(
    post, path = "/api/v1/admin/users", tag = "administration", params(OrganisationQuery),
    request_body = CreateUserRequest, responses((status = 200, description = "success", body = User), Refusals),
)]
pub(in crate::api) async fn admin_create_user(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
    JsonBody(request): JsonBody<CreateUserRequest>,
) -> Reply<User> {
    let organisation = organisation(&caller, query.organisation)?;
    let CreateUserRequest { email, name, role } = request;
    let new = NewUser { email, name, role: role.as_deref().map_or(Ok(Role::Member), convert::role)? };
    Ok(Answer(convert::user(state.scheduler.directory().create_user(organisation, new).await?)))
}
