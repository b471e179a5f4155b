//! `POST admin/signing_keys/rotate`.

use axum::extract::State;
use trainyard_wire::auth::RotateSigningResponse;

use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::AppState;

/// Withdraws all keys that sign the service's tokens, and makes another one, which signs at once; for admins of operators, when
/// one may have become known. Every server refuses the tokens that were made before within a second, and clients that
/// exchange keys for tokens make new ones by themselves.
#[utoipa::path(
    post, path = "/api/v1/admin/signing_keys/rotate", tag = "administration",
    responses((status = 200, description = "done", body = RotateSigningResponse), Refusals),
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
