//! `GET admin/users`.

use axum::extract::State;

use super::super::extract::ApiQuery;
use super::super::respond::{Answer, Reply};
use super::{convert, organisation};
use crate::auth::Caller;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::admin::{OrganisationQuery, UsersResponse};

/// The users of an organisation.
#[utoipa::path(
    get, path = "/api/v1/admin/users", tag = "administration", params(OrganisationQuery),
    responses((status = 200, description = "done", body = UsersResponse), Refusals),
)]
pub(in crate::api) async fn admin_users(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
) -> Reply<UsersResponse> {
    let organisation = organisation(&caller, query.organisation)?;
    let found = state.scheduler.directory().users(&organisation).await?;
    Ok(Answer(UsersResponse { users: found.into_iter().map(convert::user).collect() }))
}
