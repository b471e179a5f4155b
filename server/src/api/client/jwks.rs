//! Handler of `GET /.well-known/jwks.json`.

use axum::extract::State;
use axum::http::{HeaderName, header};
use trainyard_wire::auth::{JwkResponse, JwksResponse};
use trainyard_wire::client::ErrorBody;

use crate::api::request::respond::Answer;
use crate::error::ApiError;
use crate::state::AppState;

/// Clients may cache the response for one minute: a key is published for longer than this before it signs.
const CACHED: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "public, max-age=60")];

/// Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517). Needs no key.
///
/// The set is empty before the first token. A new key is published five minutes before it signs. A former key stays
/// until the last token that it signed has expired.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "client", security(()),
    responses(
        (status = 200, description = "success", body = JwksResponse),
        (status = 500, description = "the service failed", body = ErrorBody),
        (status = 503, description = "the store is not available", body = ErrorBody),
    ),
)]
pub(in crate::api) async fn jwks(
    State(state): State<AppState>,
) -> Result<([(HeaderName, &'static str); 1], Answer<JwksResponse>), ApiError> {
    let keys = state.auth.public_keys().await?;
    let keys = keys.into_iter().map(|key| JwkResponse::ed25519(key.kid, key.x)).collect();
    Ok((CACHED, Answer(JwksResponse { keys })))
}
