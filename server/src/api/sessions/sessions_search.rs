//! Handler of `POST sessions/search`.

use axum::extract::State;
use time::OffsetDateTime;
use trainyard_protocol::{SessionId, TenantId};
use trainyard_scheduler::{
    FinishReason, FoundSession, SearchPosition, SessionSearch, SessionStatus, StatusFilter, Timestamp,
};
use trainyard_wire::json;
use trainyard_wire::lists::MAX_OWNERS;
use trainyard_wire::session_search::{
    SearchCursor, SearchOwner, SessionSearchRequest, SessionSearchResponse, SessionSummary, StatusQuery, StatusSummary,
};
use trainyard_wire::sessions::{self, FinishKind};
use trainyard_wire::timestamp::rfc3339;

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::budgets::FOUND_ENTRIES;
use crate::error::ApiError;
use crate::state::AppState;

/// Searches the caller's sessions, newest first.
#[utoipa::path(
    post, path = "/api/v1/sessions/search", tag = "sessions", request_body = SessionSearchRequest,
    responses((status = 200, description = "success", body = SessionSearchResponse), Refusals),
)]
pub(in crate::api) async fn sessions_search(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(request): JsonBody<SessionSearchRequest>,
) -> Reply<SessionSearchResponse> {
    let is_own = owns(&request.owner, &tenant)?;
    let search = search(request)?;
    if !is_own {
        return Ok(Answer(SessionSearchResponse { sessions: Vec::new(), next_cursor: None }));
    }
    let found = state.scheduler.search_sessions(&tenant, &search).await?;
    let next_cursor = found.next.map(cursor).transpose()?;
    let sessions = found.sessions.into_iter().map(|session| summary(&tenant, session)).collect();
    Ok(Answer(SessionSearchResponse { sessions, next_cursor }))
}

/// Returns whether the caller is among the owners whose sessions are searched: nobody sees the sessions of others.
fn owns(owner: &SearchOwner, tenant: &TenantId) -> Result<bool, ApiError> {
    match owner {
        SearchOwner::Own | SearchOwner::Accessible => Ok(true),
        SearchOwner::User { owner_urns } if (1..=MAX_OWNERS).contains(&owner_urns.len()) => {
            Ok(owner_urns.iter().any(|urn| urn == tenant.as_str()))
        }
        SearchOwner::User { owner_urns } => Err(ApiError::invalid(format!(
            "owner.owner_urns: expected 1 to {MAX_OWNERS} entries, found {}",
            owner_urns.len()
        ))),
    }
}

fn search(request: SessionSearchRequest) -> Result<SessionSearch, ApiError> {
    if !(1..=FOUND_ENTRIES).contains(&request.limit) {
        return Err(ApiError::invalid(format!("limit: {} is not between 1 and {FOUND_ENTRIES}", request.limit)));
    }
    if request.display_name.as_deref() == Some("") {
        return Err(ApiError::invalid("display_name: must not be empty"));
    }
    Ok(SessionSearch {
        session_id: request.session_id.map(SessionId::new),
        display_name: request.display_name,
        project_ids: request.project_ids,
        user_metadata: request.user_metadata,
        statuses: request.statuses.map(statuses).transpose()?,
        limit: request.limit,
        after: request.cursor.map(position),
    })
}

fn statuses(queries: Vec<StatusQuery>) -> Result<Vec<StatusFilter>, ApiError> {
    if queries.is_empty() {
        return Err(ApiError::invalid("statuses: must not be empty"));
    }
    let filter = |query| match query {
        StatusQuery::Active => StatusFilter::Active,
        StatusQuery::Cancelled | StatusQuery::Failed => StatusFilter::Never,
        StatusQuery::ClientFinished { reasons } => {
            let reason = |kind| match kind {
                FinishKind::Success => FinishReason::Success,
                FinishKind::Errored => FinishReason::Errored,
                FinishKind::Interrupted => FinishReason::Interrupted,
            };
            StatusFilter::Finished(reasons.map(|reasons| reasons.into_iter().map(reason).collect()))
        }
    };
    Ok(queries.into_iter().map(filter).collect())
}

fn position(cursor: SearchCursor) -> SearchPosition {
    let milliseconds = cursor.last_created_at.unix_timestamp_nanos() / 1_000_000;
    let created_at = Timestamp(i64::try_from(milliseconds).unwrap_or(i64::MAX));
    SearchPosition { created_at, session: SessionId::new(cursor.last_session_id) }
}

fn cursor(position: SearchPosition) -> Result<SearchCursor, ApiError> {
    let nanoseconds = i128::from(position.created_at.as_millis()) * 1_000_000;
    let last_created_at = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds)
        .map_err(|error| ApiError::Internal(format!("a session has an invalid time: {error}")))?;
    Ok(SearchCursor { last_created_at, last_session_id: position.session.to_string() })
}

fn summary(tenant: &TenantId, session: FoundSession) -> SessionSummary {
    let metadata: json::Metadata = serde_json::from_value(session.user_metadata).unwrap_or_default();
    SessionSummary {
        session_id: session.id.to_string(),
        created_at: rfc3339(session.created_at.as_millis()),
        owner: tenant.to_string(),
        project_id: session.project_id.unwrap_or_default(),
        status: status(session.status),
        checkpoints_count: session.checkpoints,
        checkpoint_storage_bytes: session.checkpoint_bytes,
        display_name: session.display_name,
        user_metadata: json::text_metadata(&metadata),
    }
}

fn status(status: SessionStatus) -> Option<StatusSummary> {
    match status {
        SessionStatus::Active => Some(StatusSummary::Active),
        SessionStatus::Finished { reason, detail } => {
            let kind = match reason {
                FinishReason::Success => FinishKind::Success,
                FinishReason::Errored => FinishKind::Errored,
                FinishReason::Interrupted => FinishKind::Interrupted,
            };
            Some(StatusSummary::ClientFinished { reason: sessions::FinishReason { kind }, detail })
        }
        SessionStatus::Expired => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_session_is_summed_up_and_pages_continue() {
        let server = Server::start().await;
        let run = server.run().await;
        let session = run.split(':').next().unwrap();
        server.checkpoint(&run, 1, "weights", "a").await;
        server.clock.advance(1);
        let newer = server.session().await;
        let first = server.post("sessions/search", json!({"limit": 1})).await.json();
        assert_eq!(first["sessions"][0]["session_id"], newer);
        let cursor = &first["next_cursor"];
        assert_eq!(cursor["last_session_id"], newer);
        let second = server.post("sessions/search", json!({"limit": 1, "cursor": cursor})).await.json();
        let expected = json!({
            "session_id": session, "created_at": "2023-11-14T22:13:20Z", "owner": "local", "project_id": "",
            "status": {"type": "active"}, "checkpoints_count": 1, "checkpoint_storage_bytes": 7, "user_metadata": {"a": "1"},
        });
        assert_eq!(second, json!({"sessions": [expected]}));
        let others = json!({"owner": {"type": "user", "owner_urns": ["somebody"]}});
        assert_eq!(server.post("sessions/search", others).await.json(), json!({"sessions": []}));
        let own = json!({"owner": {"type": "user", "owner_urns": ["local"]}, "statuses": [{"type": "active"}]});
        assert_eq!(server.post("sessions/search", own).await.json()["sessions"].as_array().unwrap().len(), 2);
        for wrong in [
            json!({"limit": 0}),
            json!({"limit": 201}),
            json!({"display_name": ""}),
            json!({"statuses": []}),
            json!({"statuses": [{"type": "odd"}]}),
            json!({"owner": {"type": "user", "owner_urns": []}}),
            json!({"cursor": {"last_created_at": "2023-11-14T22:13:20", "last_session_id": "x"}}),
        ] {
            server.post("sessions/search", wrong).await.refused(400);
        }
    }
}
