//! `POST admin/users`.

use axum::extract::State;
use trainyard_scheduler::NewUser;

use super::super::body::JsonBody;
use super::super::extract::ApiQuery;
use super::super::respond::{Answer, Reply};
use super::{convert, organisation};
use crate::auth::Caller;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::admin::{CreateUserRequest, OrganisationQuery, User};

/// Creates a user.
#[utoipa::path(
    post, path = "/api/v1/admin/users", tag = "administration", params(OrganisationQuery),
    request_body = CreateUserRequest, responses((status = 200, description = "done", body = User), Refusals),
)]
pub(in crate::api) async fn admin_create_user(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
    JsonBody(request): JsonBody<CreateUserRequest>,
) -> Reply<User> {
    let organisation = organisation(&caller, query.organisation)?;
    let CreateUserRequest { email, name, role } = request;
    let new = NewUser { email, name, role: convert::role(role.as_deref())? };
    Ok(Answer(convert::user(state.scheduler.directory().create_user(organisation, new).await?)))
}
