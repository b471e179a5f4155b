//! Recognition of callers by the key or token that they send.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method};
use trainyard_http::peer::{self, Peer, TrustedProxies, is_forwarded};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{self as scheduler, Clock, FoundKey, KeyRefusal, Scheduler, Scope};
use trainyard_wire::auth::{AGENT_KEY_PREFIX, KEY_PREFIX};

use super::failures::{Failure, FailureReports};
use super::given::{given, is_token};
use super::issuer::{Issuer, IssuerSettings};
use super::principal::{Credential, Principal};
use super::seed::{self, Keys};
use super::signing_keys::{SigningKeys, TokenPolicy};
use super::stored::StoredKeys;
use super::tokens::{self, Accepted, Origin, Purpose, SERVICE};
use super::verified::Verified;
use super::wrong_keys::{Source, WrongKeys};
use super::{browser, keyless};
use crate::budgets::WRONG_KEYS;
use crate::error::ApiError;
use crate::jwt::{self, PublicJwk, TokenError, Unverified};

pub(super) const UNKNOWN: &str = "the API key is not known to this server";
pub(super) const MALFORMED: &str =
    "the API key is malformed: it must start with \"tml-\", or be a token, which starts with \"eyJ\"";
/// The reason why the key of a session that has ended or expired is refused.
const AGENT_OVER: &str = "the agent session of the API key has ended";
pub(super) const DISABLED: &str = "the organisation of the API key is disabled";
/// The reason why a server without keys refuses requests that a proxy passed on.
pub(super) const FORWARDED: &str = "this server has no keys, so it serves only its own machine, and a proxy passed this request on \
    (Forwarded, X-Forwarded-For or X-Real-IP): configure keys, or start it with --insecure-no-auth";

/// Recognises callers by the keys of the configuration file and the store, and by tokens.
pub struct Authenticator {
    pub(super) keys: Keys,
    pub(super) stored: StoredKeys,
    pub(super) signing: SigningKeys,
    issuer: Option<Issuer>,
    verified: Verified,
    wrong_keys: WrongKeys,
    pub(super) failures: FailureReports,
    pub(super) proxies: TrustedProxies,
    pub(super) scheduler: Scheduler,
    pub(super) clock: Arc<dyn Clock>,
}

impl Authenticator {
    /// Creates an authenticator for these keys, those of the scheduler's store, and the tokens that are made from them.
    pub fn new(keys: Keys, policy: TokenPolicy, scheduler: Scheduler, clock: Arc<dyn Clock>) -> Self {
        jwt::initialise();
        let signing = SigningKeys::new(scheduler.clone(), Arc::clone(&clock), policy);
        let stored = StoredKeys::new(scheduler.clone());
        Self {
            keys,
            stored,
            signing,
            issuer: None,
            verified: Verified::default(),
            wrong_keys: WrongKeys::default(),
            failures: FailureReports::default(),
            proxies: TrustedProxies::default(),
            scheduler,
            clock,
        }
    }

    /// Trusts these proxies to name the client they act for.
    #[must_use]
    pub fn behind(self, proxies: TrustedProxies) -> Self {
        Self { proxies, ..self }
    }

    /// Also accepts the tokens of an external issuer.
    #[must_use]
    pub fn trusting(self, issuer: Option<IssuerSettings>) -> Self {
        Self { issuer: issuer.map(Issuer::new), ..self }
    }

    /// Returns whether callers need a key that the file or the store contains. Otherwise all are the tenant `local`.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn needs_keys(&self) -> Result<bool, scheduler::Error> {
        Ok(self.keys.are_required() || self.issuer.is_some() || self.stored.any().await?)
    }

    /// Returns the caller and its key or token. A browser may be known by its session.
    pub(super) async fn authenticate(
        &self,
        method: &Method,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<(String, Principal), ApiError> {
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
        Ok((given.to_owned(), self.caller_from(given, headers, peer).await?))
    }

    /// Returns the present holder of a key or token that came from an address, which waits after many wrong keys.
    pub(super) async fn caller_from(
        &self,
        given: &str,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<Principal, ApiError> {
        let source = self.proxies.client(peer, headers).map(Source::Address);
        let (found, wrong) = self.guarded(source, given, self.caller(given)).await;
        if wrong == WRONG_KEYS {
            self.report(Failure::WrongKeys, peer::describe(peer, headers)).await;
        }
        found
    }

    /// Looks a key up unless its source has to wait. Also returns how many wrong keys the source has sent, if this is one.
    /// Tokens are signed, so they can't be guessed.
    async fn guarded(
        &self,
        source: Option<Source>,
        given: &str,
        find: impl Future<Output = Result<Principal, ApiError>>,
    ) -> (Result<Principal, ApiError>, u32) {
        let Some(source) = source.filter(|_| !is_token(given)) else { return (find.await, 0) };
        let key = Keys::digest(given);
        if let Err(wait) = self.wrong_keys.admit(&source, &key, Instant::now()) {
            return (Err(too_many(wait)), 0);
        }
        let found = find.await;
        let wrong = match &found {
            Ok(caller) if caller.credential != Credential::None => {
                self.wrong_keys.was_right(source, key, Instant::now());
                0
            }
            Err(error) if is_wrong_key(error) && self.needs_keys().await.unwrap_or(true) => {
                self.wrong_keys.was_wrong(source, Instant::now())
            }
            _ => 0,
        };
        (found, wrong)
    }

    /// Returns the present holder of a key or token.
    pub(super) async fn caller(&self, given: &str) -> Result<Principal, ApiError> {
        if is_token(given) {
            return self.bearer_of(given).await;
        }
        if !given.starts_with(KEY_PREFIX) {
            return Err(ApiError::Unauthorized(MALFORMED));
        }
        if !seed::is_well_formed(given) {
            return Err(ApiError::Unauthorized(UNKNOWN));
        }
        if given.starts_with(AGENT_KEY_PREFIX) {
            return match self.stored.find_agent(&Keys::digest(given)).await? {
                Some(found) if found.expires_at <= self.scheduler.directory().now().await? => {
                    Err(ApiError::Unauthorized(AGENT_OVER))
                }
                Some(found) => self.enabled(Principal::agent(&found)),
                // It never stands for the local tenant.
                None => self.holder(given).await,
            };
        }
        if !self.needs_keys().await? {
            return self.enabled(Principal::local(!self.keys.trusts_forwarded()));
        }
        self.holder(given).await
    }

    /// The local tenant, where a program of this machine calls a compatible API of a server without keys; else the refusal
    /// of its key.
    pub(super) async fn without_key(
        &self,
        path: &str,
        headers: &HeaderMap,
        refusal: ApiError,
    ) -> Result<(String, Principal), ApiError> {
        let is_accepted = matches!(refusal, ApiError::Unauthorized(_)) && keyless::is_accepted(path, headers);
        // The key of an agent session never stands for the local tenant.
        let is_agent = given(headers).is_ok_and(|given| given.starts_with(AGENT_KEY_PREFIX));
        if !is_accepted || is_agent || self.needs_keys().await? {
            return Err(refusal);
        }
        self.enabled(Principal::local(!self.keys.trusts_forwarded())).map(|local| (String::new(), local))
    }

    /// Refuses the holder of a key whose organisation is disabled.
    fn enabled(&self, holder: Principal) -> Result<Principal, ApiError> {
        if self.stored.is_disabled(&holder.tenant) { Err(ApiError::Unauthorized(DISABLED)) } else { Ok(holder) }
    }

    /// Finds the holder of a key.
    pub(super) async fn holder(&self, key: &str) -> Result<Principal, ApiError> {
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
    pub(super) async fn bearer_of(&self, token: &str) -> Result<Principal, ApiError> {
        let accepted = self.verify(token).await?;
        let holder = self.holder_now(&accepted).await?;
        if self.stored.is_disabled(&holder.tenant) {
            let text = "the token is no longer valid: its organisation is disabled";
            return Err(TokenError::Holder(text.to_owned()).into());
        }
        Ok(holder.within(&accepted.scopes, accepted.expires_at))
    }

    pub(super) async fn verify(&self, token: &str) -> Result<Accepted, ApiError> {
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
    /// not for checkpoints. `caller` is the tenant that names it.
    ///
    /// # Errors
    /// Fails if the store can't be read, or the caller has named many wrong keys and has to wait.
    pub(crate) async fn reader(&self, given: &str, caller: &TenantId) -> Result<Option<TenantId>, ApiError> {
        let holder = if is_token(given) {
            self.bearer_of(given).await
        } else if seed::is_well_formed(given) {
            self.guarded(Some(Source::Tenant(caller.clone())), given, self.holder(given)).await.0
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
    /// Fails if the store can be neither read nor written.
    pub(crate) async fn exchange(&self, headers: &HeaderMap, caller: &Principal) -> Result<String, ApiError> {
        let given = given(headers)?;
        // A holder of only a token can't extend it.
        if is_token(given) && Unverified::parse(given)?.issuer == SERVICE {
            return Ok(given.to_owned());
        }
        let lifetime = self.signing.policy.lifetime;
        tokens::make(&self.signing, caller, Purpose::Calls, lifetime, self.clock.now()).await
    }

    /// Withdraws all keys that sign tokens, and makes a new one, which signs at once. Returns how many were withdrawn.
    ///
    /// # Errors
    /// Fails if the store can't be written.
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
    /// Fails if the store can't be read.
    pub(crate) async fn public_keys(&self) -> Result<Vec<PublicJwk>, ApiError> {
        self.signing.published().await
    }
}

/// Returns whether a credential is refused because no holder has it.
fn is_wrong_key(error: &ApiError) -> bool {
    matches!(error, ApiError::Unauthorized(text) if [UNKNOWN, MALFORMED].contains(text))
}

fn too_many(wait: Duration) -> ApiError {
    let seconds = u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
    let message = format!("too many wrong API keys came from this address; try again in {seconds} s");
    ApiError::Busy { message, retry_after_seconds: seconds }
}
