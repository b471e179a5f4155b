//! `GET training_runs`.

use axum::extract::State;

use super::extract::ApiQuery;
use super::listing::{cursor, page, training_run};
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::catalogue::{PageQuery, TrainingRunsResponse};

/// The caller's training runs, newest first.
#[utoipa::path(
    get, path = "/api/v1/training_runs", tag = "catalogue", params(PageQuery),
    responses((status = 200, body = TrainingRunsResponse), Refusals),
)]
pub(super) async fn training_runs(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<TrainingRunsResponse> {
    let page = page(&query)?;
    let (runs, total) = state.scheduler.runs(&tenant, page).await?;
    let mut training_runs = Vec::with_capacity(runs.len());
    for run in runs {
        training_runs.push(training_run(&state, &tenant, run).await?);
    }
    Ok(Answer(TrainingRunsResponse { training_runs, cursor: cursor(page, total) }))
}
