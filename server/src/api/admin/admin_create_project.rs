//! Handler of `POST admin/projects`.

use axum::extract::State;
use trainyard_wire::admin::{CreateProjectRequest, OrganisationQuery, Project};

use super::{convert, organisation};
use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Creates a project in an organisation.
#[utoipa::path(
    post, path = "/api/v1/admin/projects", tag = "administration", params(OrganisationQuery),
    request_body = CreateProjectRequest, responses((status = 200, description = "success", body = Project), Refusals),
)]
pub(in crate::api) async fn admin_create_project(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
    JsonBody(request): JsonBody<CreateProjectRequest>,
) -> Reply<Project> {
    let organisation = organisation(&caller, query.organisation)?;
    let created = state.scheduler.directory().create_project(organisation, request.id, request.name).await?;
    Ok(Answer(convert::project(created)))
}
