//! Handler of `GET training_runs`.

use axum::extract::State;
use trainyard_scheduler::RunFilter;
use trainyard_wire::catalogue::{PageQuery, TrainingRunsResponse};

use crate::api::request::extract::ApiQuery;
use crate::api::request::listing::{cursor, page, page_of_runs, scope};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Lists the caller's training runs, newest first. With `access_scope=accessible`, the list includes runs of other
/// tenants that have a public checkpoint.
#[utoipa::path(
    get, path = "/api/v1/training_runs", tag = "catalogue", params(PageQuery),
    responses((status = 200, description = "success", body = TrainingRunsResponse), Refusals),
)]
pub(in crate::api) async fn training_runs(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<TrainingRunsResponse> {
    let page = page(&query)?;
    let filter = RunFilter { scope: scope(query.access_scope.as_deref())?, project_id: query.project_id };
    let (runs, total) = state.scheduler.runs(&tenant, &filter, page).await?;
    let training_runs = page_of_runs(&state, &tenant, runs).await?;
    Ok(Answer(TrainingRunsResponse { training_runs, cursor: cursor(page, total) }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn runs_come_with_their_newest_checkpoints() {
        let server = Server::start().await;
        let run = server.run().await;
        for (n, name) in ["a", "b"].iter().enumerate() {
            server.checkpoint(&run, n as i64 * 2 + 1, "weights", name).await;
            server.checkpoint(&run, n as i64 * 2 + 2, "external_weights", name).await;
            server.clock.advance(1);
        }
        let listed = server.get("training_runs?limit=20&offset=0").await.json();
        assert_eq!(listed["cursor"], json!({"offset": 0, "limit": 20, "total_count": 1}));
        let first = &listed["training_runs"][0];
        assert_eq!((&first["training_run_id"], &first["model_owner"]), (&json!(run), &json!("local")));
        assert_eq!(first["last_checkpoint"]["checkpoint_id"], "weights/b");
        assert_eq!(first.get("last_sampler_checkpoint"), None);
        assert_eq!(first["user_metadata"], json!({"who": "me"}));
        assert_eq!(&server.get(&format!("training_runs/{run}?access_scope=owned")).await.json(), first);
        let past = server.get("training_runs?offset=1").await.json();
        assert_eq!(past["training_runs"], json!([]));
    }
}
