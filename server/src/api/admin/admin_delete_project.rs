//! Handler of `DELETE admin/projects/{project_id}`.

use axum::extract::State;
use axum::http::StatusCode;
use trainyard_wire::admin::OrganisationQuery;

use super::organisation;
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::Refusals;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Deletes a project. Its sessions keep the project's id.
#[utoipa::path(
    delete, path = "/api/v1/admin/projects/{project_id}", tag = "administration", params(("project_id" = String, Path), OrganisationQuery),
    responses((status = 204, description = "deleted"), Refusals),
)]
pub(in crate::api) async fn admin_delete_project(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiPath(project_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
) -> Result<StatusCode, ApiError> {
    let organisation = organisation(&caller, query.organisation)?;
    state.scheduler.directory().delete_project(organisation, project_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
