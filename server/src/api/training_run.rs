//! `GET training_runs/{run_id}`.

use axum::extract::State;
use trainyard_protocol::RunId;

use super::extract::ApiPath;
use super::listing;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::catalogue::TrainingRun;

/// A training run.
#[utoipa::path(
    get, path = "/api/v1/training_runs/{run_id}", tag = "catalogue", params(("run_id" = String, Path)),
    responses((status = 200, description = "done", body = TrainingRun), Refusals),
)]
pub(super) async fn training_run(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
) -> Reply<TrainingRun> {
    let run = state.scheduler.run(&tenant, &RunId::new(run_id)).await?;
    Ok(Answer(listing::training_run(&state, &tenant, run).await?))
}
