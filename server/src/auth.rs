//! Who is calling: `X-API-Key`, or `Authorization: Bearer`, to tenant.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use trainyard_protocol::TenantId;

use crate::error::ApiError;

/// The header that carries the key.
pub const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// What every key starts with.
pub const KEY_PREFIX: &str = "tml-";
/// The tenant of a server without configured keys.
pub const LOCAL_TENANT: &str = "local";

/// The keys that the server accepts, as SHA-256 digests.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    entries: Vec<([u8; 32], TenantId)>,
    /// Without entries, requests that a proxy passed on are accepted too.
    trusts_forwarded: bool,
}

impl Keys {
    /// No configured keys: every well-formed key is the tenant `local`. For loopback alone.
    pub fn local() -> Self {
        Self::default()
    }

    /// Accepts only these keys, given as (SHA-256 of the key, its tenant).
    pub fn new(entries: Vec<([u8; 32], TenantId)>) -> Self {
        Self { entries, trusts_forwarded: false }
    }

    /// Without configured keys, accepts what a proxy passed on: then everybody is the tenant `local`.
    #[must_use]
    pub fn trust_forwarded(self) -> Self {
        Self { trusts_forwarded: true, ..self }
    }

    /// The digest under which a key is stored.
    pub fn digest(key: &str) -> [u8; 32] {
        Sha256::digest(key.as_bytes()).into()
    }

    /// Whether any keys are configured.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tenant of a key; `None` when the key is malformed or unknown. Looks at every entry, so that
    /// the time it takes does not depend on which one matches.
    pub fn tenant(&self, key: &str) -> Option<TenantId> {
        if key.len() <= KEY_PREFIX.len() || !key.starts_with(KEY_PREFIX) {
            return None;
        }
        if self.entries.is_empty() {
            return Some(TenantId::new(LOCAL_TENANT));
        }
        let digest = Self::digest(key);
        let mut found = None;
        for (known, tenant) in &self.entries {
            if equal(known, &digest) {
                found = Some(tenant);
            }
        }
        found.cloned()
    }
}

/// Compares without an early exit.
pub(crate) fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0u8, |difference, (x, y)| difference | (x ^ y));
    std::hint::black_box(difference) == 0
}

/// Refuses a request without a valid key and notes the tenant for [`Tenant`].
pub async fn require_key(State(keys): State<Arc<Keys>>, mut request: Request, next: Next) -> Response {
    match authenticate(&keys, request.headers()) {
        Ok(tenant) => {
            request.extensions_mut().insert(tenant.clone());
            let mut response = next.run(request).await;
            // For the log.
            response.extensions_mut().insert(tenant);
            response
        }
        Err(error) => error.into_response(),
    }
}

fn authenticate(keys: &Keys, headers: &HeaderMap) -> Result<TenantId, ApiError> {
    if keys.is_empty() && !keys.trusts_forwarded && is_forwarded(headers) {
        return Err(ApiError::Forbidden(FORWARDED));
    }
    let key = given_key(headers)?;
    if !key.starts_with(KEY_PREFIX) {
        return Err(ApiError::Unauthorized("the API key is malformed: it must start with \"tml-\""));
    }
    keys.tenant(key).ok_or(ApiError::Unauthorized("the API key is not known to this server"))
}

/// Why a server without keys refuses what a proxy passed on.
const FORWARDED: &str = "this server has no keys, so it serves its own machine alone, and a proxy passed this request on \
    (Forwarded, X-Forwarded-For or X-Real-IP): configure keys, or start it with --insecure-no-auth";

/// Whether a proxy passed a request on.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    ["forwarded", "x-forwarded-for", "x-real-ip"].iter().any(|name| headers.contains_key(*name))
}

/// The key of a request: `X-API-Key`, else the bearer token.
fn given_key(headers: &HeaderMap) -> Result<&str, ApiError> {
    if let Some(key) = headers.get(API_KEY) {
        return key.to_str().map_err(|_| ApiError::Unauthorized("the header X-API-Key is not text"));
    }
    let missing = ApiError::Unauthorized("the header X-API-Key is missing, and so is Authorization: Bearer KEY");
    bearer(headers).ok_or(missing)
}

/// The token of `Authorization: Bearer TOKEN`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    const SCHEME: &str = "bearer ";
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim())
}

/// The tenant that [`require_key`] found.
pub struct Tenant(pub TenantId);

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let tenant = parts.extensions.get::<TenantId>().cloned();
        tenant
            .map(Self)
            .ok_or_else(|| ApiError::Internal(format!("{} is served without a key check", parts.uri.path())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_keys_any_well_formed_key_is_local() {
        let keys = Keys::local();
        assert_eq!(keys.tenant("tml-anything"), Some(TenantId::new("local")));
        for key in ["", "tml-", "abc", "sk-tml-x"] {
            assert_eq!(keys.tenant(key), None, "{key:?}");
        }
    }

    #[test]
    fn configured_keys_name_their_tenant_and_exclude_others() {
        let keys = Keys::new(vec![
            (Keys::digest("tml-a"), TenantId::new("alpha")),
            (Keys::digest("tml-b"), TenantId::new("beta")),
        ]);
        assert_eq!(keys.tenant("tml-a"), Some(TenantId::new("alpha")));
        assert_eq!(keys.tenant("tml-b"), Some(TenantId::new("beta")));
        assert_eq!(keys.tenant("tml-c"), None);
    }
}
