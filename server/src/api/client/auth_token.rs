//! Handler of `POST auth/token`.

use axum::extract::State;
use axum::http::HeaderMap;
use trainyard_wire::auth::{AuthTokenRequest, AuthTokenResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// Exchanges the caller's API key for a token with the same permissions and a short lifetime.
///
/// The token is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`, `sub` (user or
/// key), `tenant` (the organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and `jti`. It does not outlive its
/// API key. A caller that already sends a token of this server gets the same token.
#[utoipa::path(
    post, path = "/api/v1/auth/token", tag = "client", request_body = AuthTokenRequest,
    responses((status = 200, description = "success", body = AuthTokenResponse), Refusals),
)]
pub(in crate::api) async fn auth_token(
    State(state): State<AppState>,
    Caller(caller): Caller,
    headers: HeaderMap,
    JsonBody(_request): JsonBody<AuthTokenRequest>,
) -> Reply<AuthTokenResponse> {
    Ok(Answer(AuthTokenResponse { jwt: state.auth.exchange(&headers, &caller).await? }))
}

#[cfg(test)]
#[path = "auth_token_tests.rs"]
mod tests;
