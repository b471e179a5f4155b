//! Who is calling: `X-API-Key`, or `Authorization: Bearer`, to tenant, and whether that may be done.

mod needs;
mod new_key;
mod seed;
mod stored;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{self as scheduler, Actor, Clock, FoundKey, KeyRefusal, Scheduler, Scope};

use self::needs::needed;
pub use self::new_key::KeyRequest;
pub(crate) use self::seed::equal;
pub use self::seed::{Keys, SeedKey};
use self::stored::{MAX_AGE, StoredKeys};
use crate::error::ApiError;
use crate::peer::{self, Peer};

/// The header that carries the key.
pub const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// What every key starts with.
pub const KEY_PREFIX: &str = "tml-";
/// The tenant of a server without keys.
pub const LOCAL_TENANT: &str = "local";

/// Who is calling, and what that may do.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Whose objects it sees.
    pub tenant: TenantId,
    /// Who it is, in words.
    pub name: String,
    /// The key, where the store has it.
    pub key: Option<Arc<FoundKey>>,
    /// What it may change.
    pub scopes: Vec<Scope>,
    /// Whether it manages all tenants, if it is an admin.
    pub operator: bool,
}

impl Principal {
    /// On a server without keys. It is an admin unless others than this machine may call.
    fn local(is_admin: bool) -> Self {
        let scopes = Scope::ALL.iter().copied().filter(|scope| is_admin || *scope != Scope::Admin).collect();
        let (tenant, name) = (TenantId::new(LOCAL_TENANT), "a caller without a key".to_owned());
        Self { tenant, name, key: None, scopes, operator: is_admin }
    }

    fn seeded(seed: &SeedKey, operator: bool) -> Self {
        Self {
            tenant: seed.tenant.clone(),
            name: format!("key {:?} of the configuration file", seed.name),
            key: None,
            scopes: Scope::ALL.iter().copied().filter(|scope| seed.role.allows(*scope)).collect(),
            operator,
        }
    }

    fn stored(found: Arc<FoundKey>) -> Self {
        let name = match &found.user {
            Some(user) => user.email.clone(),
            None => format!("key {:?}", found.key.name),
        };
        let (scopes, operator) = (found.scopes(), found.operator);
        Self { tenant: found.key.organisation.clone(), name, key: Some(found), scopes, operator }
    }

    fn actor(&self, address: Option<String>) -> Actor {
        let user = self.key.as_ref().and_then(|found| found.user.as_ref()).map(|user| user.id.clone());
        Actor { name: self.name.clone(), key: self.key.as_ref().map(|found| found.key.id), user, address }
    }
}

/// Recognises callers by the configuration file and the store.
pub struct Authenticator {
    keys: Keys,
    stored: StoredKeys,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// By these keys and those of the scheduler's store.
    pub fn new(keys: Keys, scheduler: Scheduler, clock: Arc<dyn Clock>) -> Self {
        Self { keys, stored: StoredKeys::new(scheduler), clock }
    }

    /// Whether callers need a key that the file or the store has. Otherwise all are the tenant `local`.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn needs_keys(&self) -> Result<bool, scheduler::Error> {
        Ok(self.keys.are_required() || self.stored.any().await?)
    }

    /// Who is calling.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, ApiError> {
        let is_local = !self.needs_keys().await?;
        if is_local && !self.keys.trusts_forwarded() && is_forwarded(headers) {
            return Err(ApiError::Forbidden(FORWARDED));
        }
        let key = given_key(headers)?;
        if !key.starts_with(KEY_PREFIX) {
            return Err(ApiError::Unauthorized("the API key is malformed: it must start with \"tml-\""));
        }
        if !seed::is_well_formed(key) {
            return Err(ApiError::Unauthorized(UNKNOWN));
        }
        if is_local {
            return Ok(Principal::local(!self.keys.trusts_forwarded()));
        }
        self.holder(key).await
    }

    /// Whose key it is.
    async fn holder(&self, key: &str) -> Result<Principal, ApiError> {
        let digest = Keys::digest(key);
        match self.keys.find(&digest) {
            Some(seed) => Ok(Principal::seeded(seed, self.keys.is_operator(&seed.tenant))),
            None => self.find_stored(&digest).await,
        }
    }

    /// The tenant whose checkpoints a key may read; `None` when the key is unknown, no longer valid or not for checkpoints.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) async fn reader(&self, key: &str) -> Result<Option<TenantId>, ApiError> {
        if !seed::is_well_formed(key) {
            return Ok(None);
        }
        match self.holder(key).await {
            Ok(holder) => Ok(holder.scopes.contains(&Scope::Checkpoints).then_some(holder.tenant)),
            Err(ApiError::Unauthorized(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn find_stored(&self, digest: &[u8; 32]) -> Result<Principal, ApiError> {
        let found = self.stored.find(digest).await?.ok_or(ApiError::Unauthorized(UNKNOWN))?;
        match found.refusal(self.clock.now()) {
            None => Ok(Principal::stored(found)),
            Some(KeyRefusal::Revoked) => Err(ApiError::Unauthorized("the API key was revoked")),
            Some(KeyRefusal::Expired) => Err(ApiError::Unauthorized("the API key has expired")),
            Some(KeyRefusal::UserDisabled) => Err(ApiError::Unauthorized("the user of the API key is disabled")),
        }
    }
}

const UNKNOWN: &str = "the API key is not known to this server";

/// Refuses a request without a valid key, or with one that does not allow it, and notes the caller for [`Tenant`] and
/// [`Caller`].
pub async fn require_key(State(auth): State<Arc<Authenticator>>, mut request: Request, next: Next) -> Response {
    let principal = match auth.authenticate(request.headers()).await {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    let path = request.extensions().get::<MatchedPath>().map_or(request.uri().path(), MatchedPath::as_str);
    let scopes = needed(request.method(), path);
    if !scopes.is_empty() && !scopes.iter().any(|scope| principal.scopes.contains(scope)) {
        let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let text = format!("the API key does not allow this: it needs the scope {}", names.join(" or "));
        return ApiError::NotAllowed(text).into_response();
    }
    let address = peer::describe(request.extensions().get::<Peer>().copied(), request.headers());
    let (tenant, actor) = (principal.tenant.clone(), principal.actor(address));
    let revocable = principal.key.as_ref().map(|_| request.headers().clone());
    request.extensions_mut().insert(tenant.clone());
    request.extensions_mut().insert(principal);
    let started = Instant::now();
    let mut response = actor.scope(next.run(request)).await;
    // A poll that was open while its key was revoked gets no result.
    if let Some(headers) = revocable.filter(|_| started.elapsed() >= MAX_AGE)
        && let Err(error) = auth.authenticate(&headers).await
    {
        response = error.into_response();
    }
    // For the log.
    response.extensions_mut().insert(tenant);
    response
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
        parts.extensions.get::<TenantId>().cloned().map(Self).ok_or_else(|| unchecked(parts))
    }
}

/// The caller that [`require_key`] found.
pub struct Caller(pub Principal);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Principal>().cloned().map(Self).ok_or_else(|| unchecked(parts))
    }
}

fn unchecked(parts: &Parts) -> ApiError {
    ApiError::Internal(format!("{} is served without a key check", parts.uri.path()))
}
