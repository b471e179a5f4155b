//! The key or token that a request contains.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};

use crate::error::ApiError;
use crate::jwt;

/// The header that carries the key, or a token.
pub const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Reads the key or token of a request: `X-API-Key`, else the bearer token.
pub(super) fn given(headers: &HeaderMap) -> Result<&str, ApiError> {
    if let Some(key) = headers.get(API_KEY) {
        return key.to_str().map_err(|_| ApiError::Unauthorized("the header X-API-Key is not text"));
    }
    let missing = ApiError::Unauthorized("the header X-API-Key is missing, and so is Authorization: Bearer KEY");
    bearer(headers).ok_or(missing)
}

/// Reads the token of `Authorization: Bearer TOKEN`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    const SCHEME: &str = "bearer ";
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim())
}

/// Returns whether this is a token instead of a key.
pub(super) fn is_token(given: &str) -> bool {
    given.starts_with(jwt::PREFIX)
}
