//! Handler of `GET checkpoints`.

use axum::extract::State;
use trainyard_wire::catalogue::{CheckpointsResponse, PageQuery};

use crate::api::request::extract::ApiQuery;
use crate::api::request::listing::{checkpoint, cursor, page, scope};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Lists the caller's checkpoints of all runs, newest first. With `access_scope=accessible`, the list includes public
/// ones of other tenants. With `project_id`, it contains only checkpoints of sessions in this project of the caller's,
/// whatever the scope.
#[utoipa::path(
    get, path = "/api/v1/checkpoints", tag = "catalogue", params(PageQuery),
    responses((status = 200, description = "success", body = CheckpointsResponse), Refusals),
)]
pub(in crate::api) async fn checkpoints(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<CheckpointsResponse> {
    let page = page(&query)?;
    let scope = scope(query.access_scope.as_deref())?;
    let (found, total) = match &query.project_id {
        Some(project) => state.scheduler.project_checkpoints(&tenant, project, page).await?,
        None => state.scheduler.checkpoints(&tenant, scope, page).await?,
    };
    let checkpoints = found.into_iter().map(checkpoint).collect();
    Ok(Answer(CheckpointsResponse { checkpoints, cursor: Some(cursor(page, total)) }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn both_listings_show_a_checkpoint() {
        let server = Server::start().await;
        let run = server.run().await;
        let path = server.checkpoint(&run, 1, "sampler_weights", "step-1").await;
        let listed = server.get("checkpoints?limit=1000&offset=0").await.json();
        assert_eq!(listed["cursor"]["total_count"], 1);
        let expected = json!({
            "checkpoint_id": "sampler_weights/step-1", "checkpoint_type": "sampler", "time": "2023-11-14T22:13:20Z",
            "tinker_path": path, "base_model": MODEL, "size_bytes": 7, "public": false, "user_metadata": {"k": "v"},
        });
        assert_eq!(listed["checkpoints"], json!([expected]));
        let of_run = server.get(&format!("training_runs/{run}/checkpoints")).await.json();
        assert_eq!(of_run["checkpoints"], json!([expected]));
        server.get("training_runs/none/checkpoints").await.refused(404);
    }

    #[tokio::test]
    async fn a_project_has_the_checkpoints_of_its_sessions() {
        let server = Server::start().await;
        let (one, other) = (server.run().await, server.run().await);
        let path = server.checkpoint(&one, 1, "weights", "a").await;
        server.checkpoint(&other, 1, "weights", "b").await;
        let session = one.split(':').next().unwrap();
        let project = format!("/api/v1/sessions/{session}/project");
        server.call(Method::PUT, &project, &[("content-type", "application/json")], r#"{"project_id": "p"}"#).await;
        for (query, expected) in [
            ("project_id=p", vec![path.as_str()]),
            ("project_id=p&access_scope=accessible", vec![path.as_str()]),
            ("project_id=p&offset=1", vec![]),
            ("project_id=q", vec![]),
        ] {
            let listed = server.get(&format!("checkpoints?{query}")).await.json();
            let paths: Vec<&str> = listed["checkpoints"]
                .as_array()
                .unwrap()
                .iter()
                .map(|found| found["tinker_path"].as_str().unwrap())
                .collect();
            assert_eq!(paths, expected, "{query}");
            assert_eq!(listed["cursor"]["total_count"], u64::from(query.starts_with("project_id=p")), "{query}");
        }
    }
}
