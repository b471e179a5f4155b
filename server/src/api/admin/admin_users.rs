//! Handler of `GET admin/users`.

use axum::extract::State;
use trainyard_wire::admin::{OrganisationQuery, UsersResponse};

use super::{convert, organisation};
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Lists the users of an organisation.
#[utoipa::path(
    get, path = "/api/v1/admin/users", tag = "administration", params(OrganisationQuery),
    responses((status = 200, description = "success", body = UsersResponse), Refusals),
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
