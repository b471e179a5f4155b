//! Handler of `GET admin/projects`.

use axum::extract::State;
use trainyard_wire::admin::{OrganisationQuery, ProjectsResponse};

use super::{convert, organisation};
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Lists the projects of an organisation.
#[utoipa::path(
    get, path = "/api/v1/admin/projects", tag = "administration", params(OrganisationQuery),
    responses((status = 200, description = "success", body = ProjectsResponse), Refusals),
)]
pub(in crate::api) async fn admin_projects(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
) -> Reply<ProjectsResponse> {
    let organisation = organisation(&caller, query.organisation)?;
    let found = state.scheduler.directory().projects(&organisation).await?;
    Ok(Answer(ProjectsResponse { projects: found.into_iter().map(convert::project).collect() }))
}
