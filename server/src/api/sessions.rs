//! `GET sessions`.

use axum::extract::State;

use super::extract::ApiQuery;
use super::listing::page;
use super::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::openapi::Refusals;
use crate::state::AppState;
use crate::wire::catalogue::PageQuery;
use crate::wire::sessions::SessionsResponse;

/// The caller's sessions, newest first.
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "sessions", params(PageQuery),
    responses((status = 200, body = SessionsResponse), Refusals),
)]
pub(super) async fn sessions(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> Reply<SessionsResponse> {
    let sessions = state.scheduler.list_sessions(&tenant, page(&query)?).await?;
    Ok(Answer(SessionsResponse { sessions: sessions.iter().map(ToString::to_string).collect() }))
}
