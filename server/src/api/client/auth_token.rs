//! `POST auth/token`.

use axum::extract::State;
use axum::http::HeaderMap;
use trainyard_wire::auth::{AuthTokenRequest, AuthTokenResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Caller;
use crate::state::AppState;

/// A token for the caller's API key, which allows the same for a short while.
///
/// It is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`, `sub` (user or key), `tenant` (the
/// organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and `jti`. It ends with its API key. A caller that has a
/// token of this server already gets the same one.
#[utoipa::path(
    post, path = "/api/v1/auth/token", tag = "client", request_body = AuthTokenRequest,
    responses((status = 200, description = "done", body = AuthTokenResponse), Refusals),
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
