//! Handler of `POST admin/signing_keys/rotate`.

use axum::extract::State;
use trainyard_wire::auth::RotateSigningResponse;

use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for admins of
/// operators. Use this if a signing key may have become known. Every server refuses the earlier tokens within a second.
/// Clients that exchange API keys for tokens obtain new ones by themselves.
#[utoipa::path(
    post, path = "/api/v1/admin/signing_keys/rotate", tag = "administration",
    responses((status = 200, description = "success", body = RotateSigningResponse), Refusals),
)]
pub(in crate::api) async fn admin_rotate_signing(
    State(state): State<AppState>,
    Caller(caller): Caller,
) -> Reply<RotateSigningResponse> {
    if !caller.operator {
        return Err(ApiError::NotAllowed("only admins of an operator rotate the signing keys".to_owned()));
    }
    let withdrawn = state.auth.rotate_signing().await?;
    Ok(Answer(RotateSigningResponse { withdrawn }))
}
