//! Handler of `DELETE auth/apikey/me`.

use axum::extract::State;
use axum::http::StatusCode;

use crate::api::request::refusals::Refusals;
use crate::auth::{Caller, Credential};
use crate::error::ApiError;
use crate::state::AppState;

/// Revokes the API key of the call.
#[utoipa::path(
    delete, path = "/api/v1/auth/apikey/me", tag = "client",
    responses((status = 204, description = "revoked"), Refusals),
)]
pub(in crate::api) async fn own_key_revoke(
    State(state): State<AppState>,
    Caller(caller): Caller,
) -> Result<StatusCode, ApiError> {
    let Some(found) = caller.key.as_deref() else {
        let text = match caller.credential {
            Credential::Issuer { .. } => "the caller uses a token of the external issuer instead of an API key",
            _ => "the API key is not in the store; remove it from the configuration file",
        };
        return Err(ApiError::NotAllowed(text.to_owned()));
    };
    state.scheduler.directory().revoke_key(found.key.organisation.clone(), found.key.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
