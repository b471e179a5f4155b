//! Handler of `GET sessions`.

use axum::extract::State;
use trainyard_wire::catalogue::PageQuery;
use trainyard_wire::sessions::SessionsResponse;

use crate::api::request::extract::ApiQuery;
use crate::api::request::listing::{page, scope};
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::state::AppState;

/// Lists the caller's sessions, newest first.
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "sessions", params(PageQuery),
    responses((status = 200, description = "success", body = SessionsResponse), Refusals),
)]
pub(in crate::api) async fn sessions(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<SessionsResponse> {
    // Nobody else's sessions can be read.
    scope(query.access_scope.as_deref())?;
    let sessions = state.scheduler.list_sessions(&tenant, query.project_id.as_deref(), page(&query)?).await?;
    Ok(Answer(SessionsResponse { sessions: sessions.iter().map(ToString::to_string).collect() }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn wrong_pages_are_refused_by_name() {
        let server = Server::start().await;
        for (query, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("access_scope=all", "access_scope")] {
            let refused = server.get(&format!("sessions?{query}")).await.refused(400);
            assert!(refused.starts_with(field), "{refused}");
        }
        server.get("sessions?limit=x").await.refused(400);
    }
}
