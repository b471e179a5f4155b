//! Handler of `GET training_runs/{run_id}/checkpoints`.

use axum::extract::State;
use trainyard_protocol::RunId;
use trainyard_scheduler::Page;
use trainyard_wire::catalogue::CheckpointsResponse;

use crate::api::request::extract::ApiPath;
use crate::api::request::listing::{checkpoint, cursor};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// All checkpoints of a run: clients don't ask for pages here.
const ALL: Page = Page { limit: u32::MAX, offset: 0 };

/// Lists a run's checkpoints, newest first. For a run of another tenant, the list contains only public ones.
#[utoipa::path(
    get, path = "/api/v1/training_runs/{run_id}/checkpoints", tag = "catalogue", params(("run_id" = String, Path)),
    responses((status = 200, description = "success", body = CheckpointsResponse), Refusals),
)]
pub(in crate::api) async fn run_checkpoints(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
) -> Reply<CheckpointsResponse> {
    let run = state.scheduler.readable_run(&tenant, &RunId::new(run_id)).await?;
    let (found, total) = state.scheduler.run_checkpoints(&tenant, &run.id, ALL).await?;
    let checkpoints: Vec<_> = found.into_iter().map(checkpoint).collect();
    // The page is as long as it needs to be.
    let page = Page { limit: u32::try_from(checkpoints.len()).unwrap_or(u32::MAX), offset: 0 };
    Ok(Answer(CheckpointsResponse { checkpoints, cursor: Some(cursor(page, total)) }))
}
