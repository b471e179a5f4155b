//! Handler of `POST admin/keys`.

use std::time::Duration;

use axum::extract::State;
use trainyard_scheduler::Role;
use trainyard_wire::admin::{CreateKeyRequest, CreateKeyResponse, OrganisationQuery};

use super::{convert, first_key, organisation};
use crate::api::request::body::JsonBody;
use crate::api::request::extract::ApiQuery;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, KeyRequest};
use crate::error::ApiError;
use crate::state::AppState;

/// Creates an API key. The key is returned only once; the server stores only its SHA-256.
#[utoipa::path(
    post, path = "/api/v1/admin/keys", tag = "administration", params(OrganisationQuery),
    request_body = CreateKeyRequest, responses((status = 200, description = "success", body = CreateKeyResponse), Refusals),
)]
pub(in crate::api) async fn admin_create_key(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<OrganisationQuery>,
    JsonBody(request): JsonBody<CreateKeyRequest>,
) -> Reply<CreateKeyResponse> {
    let organisation = organisation(&caller, query.organisation)?;
    let CreateKeyRequest { name, note, user, role, scopes, expires_in_seconds } = request;
    let expires_in = expires_in_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
    let is_first = !state.auth.needs_keys().await?;
    let request = KeyRequest {
        user,
        name,
        note,
        role: role.as_deref().map(convert::role).transpose()?.or(is_first.then_some(Role::Admin)),
        scopes: scopes.as_deref().map(convert::scopes).transpose()?,
        expires_at: expires_in.map(|lifetime| state.clock.now().plus(lifetime)),
    };
    if is_first {
        first_key::check(&state, &organisation, &request).await?;
    }
    let (key, new) =
        request.make().map_err(|error| ApiError::Internal(format!("failed to get random numbers: {error}")))?;
    let created = state.scheduler.directory().create_key(organisation, new).await?;
    Ok(Answer(CreateKeyResponse { key, details: convert::key(created) }))
}
