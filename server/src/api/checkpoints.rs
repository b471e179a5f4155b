//! `GET checkpoints`.

use axum::extract::State;

use super::extract::ApiQuery;
use super::listing::{checkpoint, cursor, page};
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::catalogue::{CheckpointsResponse, PageQuery};

/// The caller's checkpoints across runs, newest first.
#[utoipa::path(
    get, path = "/api/v1/checkpoints", tag = "catalogue", params(PageQuery),
    responses((status = 200, body = CheckpointsResponse), Refusals),
)]
pub(super) async fn checkpoints(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<CheckpointsResponse> {
    let page = page(&query)?;
    let (found, total) = state.scheduler.checkpoints(&tenant, None, page).await?;
    let checkpoints = found.into_iter().map(checkpoint).collect();
    Ok(Answer(CheckpointsResponse { checkpoints, cursor: Some(cursor(page, total)) }))
}
