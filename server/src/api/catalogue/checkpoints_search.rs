//! Handler of `POST checkpoints/search`.

use axum::extract::State;
use time::OffsetDateTime;
use trainyard_protocol::{CheckpointKind, OpError, TenantId};
use trainyard_scheduler::{AccessScope, CheckpointPosition, CheckpointSearch, Timestamp};
use trainyard_wire::checkpoint_search::{CheckpointCursor, CheckpointSearchRequest, CheckpointSearchResponse};
use trainyard_wire::lists::MAX_OWNERS;
use trainyard_wire::session_search::SearchOwner;

use crate::api::request::body::JsonBody;
use crate::api::request::listing::checkpoint;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::budgets::FOUND_ENTRIES;
use crate::error::ApiError;
use crate::state::AppState;

/// Searches the checkpoints that the caller may list, newest first. These are the caller's own; with another `owner`,
/// also public ones.
#[utoipa::path(
    post, path = "/api/v1/checkpoints/search", tag = "catalogue", request_body = CheckpointSearchRequest,
    responses((status = 200, description = "success", body = CheckpointSearchResponse), Refusals),
)]
pub(in crate::api) async fn checkpoints_search(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    JsonBody(mut request): JsonBody<CheckpointSearchRequest>,
) -> Reply<CheckpointSearchResponse> {
    request.base_models =
        request.base_models.map(|names| names.into_iter().map(|name| state.base_name(name)).collect());
    let found = state.scheduler.search_checkpoints(&tenant, &search(request)?).await?;
    let next_cursor = found.next.map(cursor).transpose()?;
    let checkpoints = found.checkpoints.into_iter().map(checkpoint).collect();
    Ok(Answer(CheckpointSearchResponse { checkpoints, next_cursor }))
}

fn search(request: CheckpointSearchRequest) -> Result<CheckpointSearch, ApiError> {
    if !(1..=FOUND_ENTRIES).contains(&request.limit) {
        return Err(ApiError::invalid(format!("limit: {} is not between 1 and {FOUND_ENTRIES}", request.limit)));
    }
    let (scope, owners) = match request.owner {
        SearchOwner::Own => (AccessScope::Owned, None),
        SearchOwner::Accessible => (AccessScope::Accessible, None),
        SearchOwner::User { owner_urns } if (1..=MAX_OWNERS).contains(&owner_urns.len()) => {
            (AccessScope::Accessible, Some(owner_urns.into_iter().map(TenantId::new).collect()))
        }
        SearchOwner::User { owner_urns } => {
            let count = owner_urns.len();
            let text = format!("owner.owner_urns: expected 1 to {MAX_OWNERS} entries, found {count}");
            return Err(ApiError::invalid(text));
        }
    };
    Ok(CheckpointSearch {
        scope,
        owners,
        project_ids: request.project_ids,
        user_metadata: request.user_metadata,
        kind: request.checkpoint_type.as_deref().map(kind).transpose()?,
        base_models: request.base_models,
        limit: request.limit,
        after: request.cursor.map(position).transpose()?,
    })
}

fn kind(text: &str) -> Result<CheckpointKind, ApiError> {
    match text {
        "training" => Ok(CheckpointKind::Training),
        "sampler" => Ok(CheckpointKind::Sampler),
        "external" => Ok(CheckpointKind::External),
        _ => Err(ApiError::invalid(format!("checkpoint_type: expected training, sampler or external, found {text:?}"))),
    }
}

fn position(cursor: CheckpointCursor) -> Result<CheckpointPosition, ApiError> {
    let milliseconds = cursor.last_created_at.unix_timestamp_nanos() / 1_000_000;
    let path = cursor.last_checkpoint_uuid.parse();
    let path =
        path.map_err(|error: OpError| ApiError::invalid(format!("cursor.last_checkpoint_uuid: {}", error.message)))?;
    Ok(CheckpointPosition { created_at: Timestamp(i64::try_from(milliseconds).unwrap_or(i64::MAX)), path })
}

fn cursor(position: CheckpointPosition) -> Result<CheckpointCursor, ApiError> {
    let nanoseconds = i128::from(position.created_at.as_millis()) * 1_000_000;
    let last_created_at = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds)
        .map_err(|error| ApiError::Internal(format!("a checkpoint has an invalid time: {error}")))?;
    Ok(CheckpointCursor { last_created_at, last_checkpoint_uuid: position.path.to_string() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::http::Method;
    use serde_json::{Value, json};
    use trainyard_protocol::TenantId;

    use crate::api::tests::testing::*;
    use crate::auth::Keys;
    use crate::state::Limits;

    const OTHER: &str = "tml-other";

    fn paths(found: &Value) -> Vec<&str> {
        let checkpoints = found["checkpoints"].as_array().unwrap();
        checkpoints.iter().map(|checkpoint| checkpoint["tinker_path"].as_str().unwrap()).collect()
    }

    #[tokio::test]
    async fn filters_hold_together_and_pages_continue() {
        let server = Server::start().await;
        let run = server.run().await;
        let session = run.split(':').next().unwrap().to_owned();
        let mut made = Vec::new();
        for (n, kind) in ["weights", "sampler_weights", "external_weights"].into_iter().enumerate() {
            made.insert(0, server.checkpoint(&run, n as i64 + 1, kind, "a").await);
            server.clock.advance(1);
        }
        // Of the same time: by descending path.
        for n in 4..=5 {
            made.insert(0, server.checkpoint(&run, n, "weights", &format!("b{n}")).await);
        }
        let search = async |body: Value| server.post("checkpoints/search", body).await.json();
        assert_eq!(paths(&search(json!({})).await), made);
        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = search(json!({"limit": 2, "cursor": cursor})).await;
            seen.extend(paths(&page).into_iter().map(str::to_owned));
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(seen, made);
        let external = search(json!({"checkpoint_type": "external", "user_metadata": {"k": "v"}})).await;
        assert_eq!(paths(&external), [&made[2]]);
        assert_eq!(external["checkpoints"][0]["base_model"], MODEL);
        assert_eq!(paths(&search(json!({"base_models": ["x", MODEL]})).await).len(), 5);
        assert_eq!(paths(&search(json!({"base_models": [format!("{MODEL}:peft:256")]})).await).len(), 5);
        for none in [
            json!({"base_models": []}),
            json!({"user_metadata": {"k": "v", "l": "v"}}),
            json!({"project_ids": ["p"]}),
            json!({"owner": {"type": "user", "owner_urns": ["somebody"]}}),
        ] {
            assert!(paths(&search(none).await).is_empty());
        }
        let moved = format!("/api/v1/sessions/{session}/project");
        server.call(Method::PUT, &moved, &[("content-type", "application/json")], r#"{"project_id": "p"}"#).await;
        assert_eq!(paths(&search(json!({"project_ids": ["p"]})).await).len(), 5);
        for wrong in [
            json!({"limit": 0}),
            json!({"limit": 201}),
            json!({"checkpoint_type": "weights"}),
            json!({"owner": {"type": "user", "owner_urns": []}}),
            json!({"cursor": {"last_created_at": "2023-11-14T22:13:20Z", "last_checkpoint_uuid": "x"}}),
            json!({"unknown": 1}),
        ] {
            server.post("checkpoints/search", wrong).await.refused(400);
        }
    }

    #[tokio::test]
    async fn of_others_only_what_is_public_is_found_and_never_by_project() {
        let keys = [(OTHER, "alpha"), (KEY, "beta")];
        let keys = keys.map(|(key, tenant)| (Keys::digest(key), TenantId::new(tenant)));
        let server = Server::with(Limits::default(), Keys::new(keys.to_vec())).await;
        let run = server.run().await;
        let open = server.checkpoint(&run, 1, "sampler_weights", "open").await;
        server.checkpoint(&run, 2, "sampler_weights", "secret").await;
        server.on_run(Method::POST, &format!("{run}/checkpoints/sampler_weights/open/publish"), None).await;
        let session = run.split(':').next().unwrap();
        let moved = format!("/api/v1/sessions/{session}/project");
        server.call(Method::PUT, &moved, &[("content-type", "application/json")], r#"{"project_id": "p"}"#).await;
        let search = async |body: Value| server.post_as(OTHER, "checkpoints/search", body).await.json();
        assert!(paths(&search(json!({})).await).is_empty());
        for owner in [json!({"type": "accessible"}), json!({"type": "user", "owner_urns": ["beta"]})] {
            assert_eq!(paths(&search(json!({"owner": owner})).await), [&open]);
            assert!(paths(&search(json!({"owner": owner, "project_ids": ["p"]})).await).is_empty());
        }
    }
}
