//! Handler of `GET training_runs/{run_id}`.

use axum::extract::State;
use trainyard_protocol::RunId;
use trainyard_scheduler::AccessScope;
use trainyard_wire::catalogue::{ScopeQuery, TrainingRun};

use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::listing;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Returns a training run. With `access_scope=accessible`, it may belong to another tenant if it has a public
/// checkpoint.
#[utoipa::path(
    get, path = "/api/v1/training_runs/{run_id}", tag = "catalogue",
    params(("run_id" = String, Path), ScopeQuery),
    responses((status = 200, description = "success", body = TrainingRun), Refusals),
)]
pub(in crate::api) async fn training_run(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<ScopeQuery>,
) -> Reply<TrainingRun> {
    let run = RunId::new(run_id);
    let run = match listing::scope(query.access_scope.as_deref())? {
        AccessScope::Owned => state.scheduler.run(&tenant, &run).await?,
        AccessScope::Accessible => state.scheduler.readable_run(&tenant, &run).await?,
    };
    Ok(Answer(listing::training_run(&state, &tenant, run).await?))
}
