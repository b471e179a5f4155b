//! Authentication: finds the tenant of the key or token in `X-API-Key` or `Authorization: Bearer`, and checks what it
//! allows.

pub(crate) mod browser;
mod browser_sessions;
mod in_flight;
mod issuer;
mod keyless;
mod needs;
mod new_key;
mod own_host;
mod principal;
mod seed;
mod signing_keys;
mod stored;
mod tokens;
mod verified;

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{self as scheduler, Clock, FoundKey, KeyRefusal, Scheduler, Scope};
use trainyard_wire::auth::KEY_PREFIX;

use self::issuer::Issuer;
pub(crate) use self::issuer::is_protected;
pub use self::issuer::{IssuerSettings, KeySource, Named};
use self::needs::needed;
pub use self::new_key::KeyRequest;
pub use self::own_host::require_own_host;
pub use self::principal::{Credential, Principal};
pub(crate) use self::seed::equal;
pub use self::seed::{Keys, SeedKey};
use self::signing_keys::SigningKeys;
pub use self::signing_keys::TokenPolicy;
pub(crate) use self::signing_keys::replace_all as replace_signing_keys;
use self::stored::StoredKeys;
use self::tokens::{Accepted, Origin, Purpose, SERVICE};
use self::verified::Verified;
use crate::error::ApiError;
use crate::jwt::{self, PublicJwk, TokenError, Unverified};
use crate::peer::{self, Peer, is_forwarded};

/// The header that carries the key, or a token.
pub const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The tenant of a server without keys.
pub const LOCAL_TENANT: &str = "local";

/// Recognises callers by the configuration file, the store and the tokens that they have.
pub struct Authenticator {
    keys: Keys,
    stored: StoredKeys,
    signing: SigningKeys,
    issuer: Option<Issuer>,
    verified: Verified,
    clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Accepts these keys, those of the scheduler's store, and the tokens that are made from them.
    pub fn new(keys: Keys, policy: TokenPolicy, scheduler: Scheduler, clock: Arc<dyn Clock>) -> Self {
        jwt::initialise();
        let signing = SigningKeys::new(scheduler.clone(), Arc::clone(&clock), policy);
        let stored = StoredKeys::new(scheduler);
        Self { keys, stored, signing, issuer: None, verified: Verified::default(), clock }
    }

    /// Also accepts the tokens of an external issuer.
    #[must_use]
    pub fn trusting(self, issuer: Option<IssuerSettings>) -> Self {
        Self { issuer: issuer.map(Issuer::new), ..self }
    }

    /// Returns whether callers need a key that the file or the store contains. Otherwise all are the tenant `local`.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn needs_keys(&self) -> Result<bool, scheduler::Error> {
        Ok(self.keys.are_required() || self.issuer.is_some() || self.stored.any().await?)
    }

    /// Returns the caller and its key or token. A browser may be known by its session.
    async fn authenticate(&self, method: &Method, headers: &HeaderMap) -> Result<(String, Principal), ApiError> {
        if !self.keys.trusts_forwarded() && is_forwarded(headers) && !self.needs_keys().await? {
            return Err(ApiError::Forbidden(FORWARDED));
        }
        let given = match (given(headers), browser::session(headers)) {
            (Err(_), Some(session)) => {
                browser::check(method, headers, session)?;
                session
            }
            (given, _) => given?,
        };
        Ok((given.to_owned(), self.caller(given).await?))
    }

    /// Returns the present holder of a key or token.
    async fn caller(&self, given: &str) -> Result<Principal, ApiError> {
        if is_token(given) {
            return self.bearer_of(given).await;
        }
        if !given.starts_with(KEY_PREFIX) {
            let text =
                "the API key is malformed: it must start with \"tml-\", or be a token, which starts with \"eyJ\"";
            return Err(ApiError::Unauthorized(text));
        }
        if !seed::is_well_formed(given) {
            return Err(ApiError::Unauthorized(UNKNOWN));
        }
        if !self.needs_keys().await? {
            return self.enabled(Principal::local(!self.keys.trusts_forwarded()));
        }
        self.holder(given).await
    }

    /// The local tenant, where a program of this machine calls a compatible API of a server without keys; else the refusal
    /// of its key.
    async fn without_key(
        &self,
        path: &str,
        headers: &HeaderMap,
        refusal: ApiError,
    ) -> Result<(String, Principal), ApiError> {
        let is_accepted = matches!(refusal, ApiError::Unauthorized(_)) && keyless::is_accepted(path, headers);
        if !is_accepted || self.needs_keys().await? {
            return Err(refusal);
        }
        self.enabled(Principal::local(!self.keys.trusts_forwarded())).map(|local| (String::new(), local))
    }

    /// Refuses the holder of a key whose organisation is disabled.
    fn enabled(&self, holder: Principal) -> Result<Principal, ApiError> {
        if self.stored.is_disabled(&holder.tenant) { Err(ApiError::Unauthorized(DISABLED)) } else { Ok(holder) }
    }

    /// Finds the holder of a key.
    async fn holder(&self, key: &str) -> Result<Principal, ApiError> {
        let digest = Keys::digest(key);
        match self.keys.find(&digest) {
            Some(seed) => self.enabled(Principal::seeded(seed, self.keys.is_operator(&seed.tenant))),
            None => {
                let found = self.stored.find(&digest).await?.ok_or(ApiError::Unauthorized(UNKNOWN))?;
                match self.refusal(&found) {
                    None => self.enabled(Principal::stored(found)),
                    Some(reason) => Err(ApiError::Unauthorized(reason)),
                }
            }
        }
    }

    /// Finds the holder of a token, limited to the access that the token was made with.
    async fn bearer_of(&self, token: &str) -> Result<Principal, ApiError> {
        let accepted = self.verify(token).await?;
        let holder = self.holder_now(&accepted).await?;
        if self.stored.is_disabled(&holder.tenant) {
            let text = "the token is no longer valid: its organisation is disabled";
            return Err(TokenError::Holder(text.to_owned()).into());
        }
        Ok(holder.within(&accepted.scopes, accepted.expires_at))
    }

    async fn verify(&self, token: &str) -> Result<Accepted, ApiError> {
        let digest = Verified::digest(token);
        let now = self.clock.now();
        if let Some(accepted) = self.verified.get(&digest) {
            if accepted.expires_at <= now {
                return Err(TokenError::Expired.into());
            }
            if let Some(kid) = &accepted.signed_by
                && !self.signing.knows(kid).await?
            {
                return Err(TokenError::UnknownKey.into());
            }
            return Ok(accepted);
        }
        let unverified = Unverified::parse(token)?;
        let accepted = match &self.issuer {
            _ if unverified.issuer == SERVICE => tokens::accept(&self.signing, &unverified, now).await?,
            Some(issuer) if issuer.is_named_by(&unverified) => issuer.accept(&unverified, now).await?,
            _ => return Err(TokenError::Issuer.into()),
        };
        self.verified.put(digest, accepted.clone());
        Ok(accepted)
    }

    /// Finds the present holder of a token, as the file and the store define it.
    async fn holder_now(&self, token: &Accepted) -> Result<Principal, ApiError> {
        let lost = |text: &str| ApiError::from(TokenError::Holder(text.to_owned()));
        if let Some(session) = &token.session
            && self.stored.has_ended(session).await?
        {
            return Err(lost("the browser's session was ended by a logout"));
        }
        match &token.origin {
            Origin::None if self.needs_keys().await? => {
                Err(lost("the token was made when the server had no keys; now it has some"))
            }
            Origin::None => Ok(Principal::local(!self.keys.trusts_forwarded())),
            Origin::Seed { fingerprint } => {
                let seed = self.keys.find_fingerprint(fingerprint);
                let seed =
                    seed.ok_or_else(|| lost("the API key of the token is no longer in the configuration file"))?;
                Ok(Principal::seeded(seed, self.keys.is_operator(&seed.tenant)))
            }
            Origin::Key { id } => {
                let found = self.stored.find_by_id(*id).await?;
                // A store that was restored from a backup may have less keys.
                let found = found.filter(|found| found.key.organisation == token.identity.organisation);
                let found = found.ok_or_else(|| lost("the API key of the token is not known to this server"))?;
                match self.refusal(&found) {
                    None => Ok(Principal::stored(found)),
                    Some(reason) => Err(lost(&format!("the token is no longer valid: {reason}"))),
                }
            }
            Origin::Issuer { key, .. } => {
                let issuer =
                    self.issuer.as_ref().ok_or_else(|| lost("the issuer of the token is no longer trusted"))?;
                if let Some(key) = key
                    && !issuer.publishes(key).await?
                {
                    return Err(TokenError::WithdrawnKey.into());
                }
                let identity = token.identity.clone();
                let found = self.stored.membership(&identity.organisation, identity.email.as_deref()).await?;
                let membership = found.ok_or_else(|| lost("the organisation of the token does not exist"))?;
                if membership.user.as_ref().is_some_and(|user| user.disabled_at.is_some()) {
                    return Err(lost("the user of the token is disabled"));
                }
                Ok(Principal::vouched(identity, key.clone(), membership))
            }
        }
    }

    /// Returns the reason to refuse a key of the store, if there is one.
    fn refusal(&self, found: &FoundKey) -> Option<&'static str> {
        Some(match found.refusal(self.clock.now())? {
            KeyRefusal::Revoked => "the API key was revoked",
            KeyRefusal::Expired => "the API key has expired",
            KeyRefusal::UserDisabled => "the user of the API key is disabled",
        })
    }

    /// Returns the tenant whose checkpoints a key or a token may read; `None` when it is unknown, no longer valid or
    /// not for checkpoints.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) async fn reader(&self, given: &str) -> Result<Option<TenantId>, ApiError> {
        let holder = if is_token(given) {
            self.bearer_of(given).await
        } else if seed::is_well_formed(given) {
            self.holder(given).await
        } else {
            return Ok(None);
        };
        match holder {
            Ok(holder) => Ok(holder.scopes.contains(&Scope::Checkpoints).then_some(holder.tenant)),
            Err(ApiError::Unauthorized(_) | ApiError::Token(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a token for the caller of a request, or returns the token that it called with.
    ///
    /// # Errors
    /// When the store can be neither read nor written.
    pub(crate) async fn exchange(&self, headers: &HeaderMap, caller: &Principal) -> Result<String, ApiError> {
        let given = given(headers)?;
        // A holder of only a token can't extend it.
        if is_token(given) && Unverified::parse(given)?.issuer == SERVICE {
            return Ok(given.to_owned());
        }
        let made = (Purpose::Calls, self.signing.policy.lifetime);
        tokens::make(&self.signing, caller, made, self.clock.now()).await
    }

    /// Withdraws all keys that sign tokens, and makes a new one, which signs at once. Returns how many were withdrawn.
    ///
    /// # Errors
    /// When the store can't be written.
    pub(crate) async fn rotate_signing(&self) -> Result<usize, ApiError> {
        self.signing.withdraw_all().await
    }

    /// Returns whether clients are told to exchange their keys for tokens.
    pub(crate) fn offers_tokens(&self) -> bool {
        self.signing.policy.offered
    }

    /// The public keys of the service.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) async fn public_keys(&self) -> Result<Vec<PublicJwk>, ApiError> {
        self.signing.published().await
    }
}

const UNKNOWN: &str = "the API key is not known to this server";
const DISABLED: &str = "the organisation of the API key is disabled";

/// Returns whether this is a token instead of a key.
fn is_token(given: &str) -> bool {
    given.starts_with(jwt::PREFIX)
}

/// Refuses a request without a valid key, or with one that does not allow it, and notes the caller for [`Tenant`] and
/// [`Caller`].
pub async fn require_key(State(auth): State<Arc<Authenticator>>, mut request: Request, next: Next) -> Response {
    let found = match auth.authenticate(request.method(), request.headers()).await {
        Err(refusal) => auth.without_key(request.uri().path(), request.headers(), refusal).await,
        found => found,
    };
    let (given, principal) = match found {
        Ok(found) => found,
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
    // Without keys nobody has access to lose; thousands of samples may be in flight.
    let is_watched = !matches!(principal.credential, Credential::None);
    request.extensions_mut().insert(tenant.clone());
    request.extensions_mut().insert(principal);
    let answer = actor.scope(next.run(request));
    let mut response = match is_watched {
        true => in_flight::watched(in_flight::InFlightCaller { auth, given, tenant: tenant.clone() }, answer).await,
        false => answer.await,
    };
    // For the log.
    response.extensions_mut().insert(tenant);
    response
}

/// The reason why a server without keys refuses requests that a proxy passed on.
const FORWARDED: &str = "this server has no keys, so it serves its own machine alone, and a proxy passed this request on \
    (Forwarded, X-Forwarded-For or X-Real-IP): configure keys, or start it with --insecure-no-auth";

/// Reads the key or token of a request: `X-API-Key`, else the bearer token.
fn given(headers: &HeaderMap) -> Result<&str, ApiError> {
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
