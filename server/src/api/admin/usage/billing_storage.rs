//! Handler of `GET billing/usage/checkpoints/current`.

use axum::extract::State;
use trainyard_wire::usage::{StorageInUse, StorageQuery, StorageResponse};

use super::GIGABYTE;
use crate::api::admin::organisation;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Returns the checkpoints that an organisation stores now, by project and user; for admins.
#[utoipa::path(
    get, path = "/api/v1/billing/usage/checkpoints/current", tag = "administration", params(StorageQuery),
    responses((status = 200, description = "success", body = StorageResponse), Refusals),
)]
pub(in crate::api) async fn billing_storage(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<StorageQuery>,
) -> Reply<StorageResponse> {
    let organisation = organisation(&caller, query.organisation)?;
    let mut found = state.scheduler.storage_in_use(&organisation).await?;
    found.retain(|in_use| query.project_id.is_none() || in_use.project == query.project_id);
    let in_use = found.into_iter().map(|in_use| StorageInUse {
        checkpoint_count: in_use.checkpoints,
        size_bytes: in_use.size_bytes,
        size_gigabytes: in_use.size_bytes as f64 / GIGABYTE,
        project_id: in_use.project,
        user_email: in_use.user,
    });
    Ok(Answer(StorageResponse { data: in_use.collect() }))
}
