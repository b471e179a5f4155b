//! Tokens of an external issuer, such as a company's identity provider: who their holders are, and what they may do
//! here.

mod fetch;
mod remote_keys;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Role, Scope, Timestamp};

pub use self::fetch::KeySource;
pub(crate) use self::fetch::is_protected;
use self::remote_keys::{RemoteKeys, Times};
use super::principal::Identity;
use super::tokens::{Accepted, Origin};
use crate::error::ApiError;
use crate::jwt::{Expected, TokenError, Unverified, seconds, text};

/// The largest accepted difference of the issuer's clock, in seconds.
const LEEWAY: i64 = 60;
/// The longest subject or email, in bytes.
const MAX_TEXT: usize = 200;

/// The issuer whose tokens are accepted, and the meaning of their claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerSettings {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The place where its keys are published.
    pub keys: KeySource,
    /// The value that the `aud` of its tokens must contain.
    pub audience: String,
    /// The organisation of its users.
    pub organisation: Named,
    /// The claim that contains a user's email.
    pub user_claim: String,
    /// Whether the claim `email` counts without `email_verified`.
    pub accepts_unverified_emails: bool,
    /// The claim that contains a user's roles or groups.
    pub role_claim: Option<String>,
    /// The role for each value of that claim; the one that allows the most counts.
    pub roles: BTreeMap<String, Role>,
    /// The role of users without a configured value; they are refused when `None`.
    pub default_role: Option<Role>,
    /// The time after which keys are fetched again.
    pub keys_refresh: Duration,
    /// The time for which keys are used while they can't be fetched again.
    pub keys_stale: Duration,
}

impl IssuerSettings {
    /// The default of [`Self::keys_refresh`].
    pub const KEYS_REFRESH: Duration = Duration::from_secs(30);
    /// The default of [`Self::keys_stale`].
    pub const KEYS_STALE: Duration = Duration::from_secs(3_600);
}

/// A name that is fixed, or that a claim contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The same name for all tokens.
    Fixed(String),
    /// The claim that contains the name.
    Claim(String),
}

/// Accepts the tokens of an issuer.
pub(super) struct Issuer {
    settings: IssuerSettings,
    keys: Arc<RemoteKeys>,
}

impl Issuer {
    pub(super) fn new(settings: IssuerSettings) -> Self {
        let times = Times::new(settings.keys_refresh, settings.keys_stale);
        let keys = RemoteKeys::new(settings.keys.clone(), settings.issuer.clone(), times);
        Self { settings, keys: Arc::new(keys) }
    }

    /// Returns whether the issuer publishes the key with this fingerprint.
    pub(super) async fn publishes(&self, fingerprint: &str) -> Result<bool, ApiError> {
        self.keys.contain(fingerprint).await
    }

    /// Returns whether a token names this issuer.
    pub(super) fn is_named_by(&self, token: &Unverified<'_>) -> bool {
        token.issuer == self.settings.issuer
    }

    /// Verifies a token that names this issuer.
    pub(super) async fn accept(&self, token: &Unverified<'_>, now: Timestamp) -> Result<Accepted, ApiError> {
        let key = self.keys.find(token.kid.as_deref()).await?;
        let now = now.as_millis().div_euclid(1_000);
        let (issuer, audience) = (self.settings.issuer.as_str(), self.settings.audience.as_str());
        let claims = token.verify(&key, Expected { issuer, audience, leeway: LEEWAY, now })?;
        Ok(self.settings.read(&claims, key.fingerprint)?)
    }
}

impl IssuerSettings {
    /// Reads the holder of a token that the key with this fingerprint has signed.
    fn read(&self, claims: &Map<String, Value>, key: String) -> Result<Accepted, TokenError> {
        let subject = bounded("sub", text(claims, "sub")?)?;
        let organisation = match &self.organisation {
            Named::Fixed(name) => name.clone(),
            Named::Claim(claim) => match find(claims, claim) {
                Some(Value::String(name)) => bounded(claim, name)?,
                Some(_) => return Err(TokenError::claim(claim, "is not a string")),
                None => return Err(TokenError::Missing(claim.clone())),
            },
        };
        let email = match find(claims, &self.user_claim) {
            Some(Value::String(email)) => Some(bounded(&self.user_claim, email)?),
            Some(_) => return Err(TokenError::claim(&self.user_claim, "is not a string")),
            None => None,
        };
        if email.is_some() && self.user_claim == "email" && !self.accepts_unverified_emails {
            require_verified(claims)?;
        }
        let expires = seconds(claims, "exp")?.ok_or_else(|| TokenError::Missing("exp".to_owned()))?;
        let identity = Identity {
            organisation: TenantId::new(organisation),
            subject: subject.clone(),
            email,
            role: self.role(claims)?,
        };
        Ok(Accepted {
            origin: Origin::Issuer { subject, key: Some(key) },
            identity,
            scopes: Scope::ALL.to_vec(),
            expires_at: Timestamp(expires.saturating_add(LEEWAY).saturating_mul(1_000)),
            signed_by: None,
            session: None,
        })
    }

    fn role(&self, claims: &Map<String, Value>) -> Result<Role, TokenError> {
        let granted = self.role_claim.as_ref().and_then(|claim| find(claims, claim));
        let names: Vec<&str> = match granted {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        // Roles are in the order of what they allow, the most first.
        let role = names.iter().filter_map(|name| self.roles.get(*name)).min().copied().or(self.default_role);
        role.ok_or_else(|| {
            let claim = self.role_claim.as_deref().unwrap_or("role");
            TokenError::Holder(format!(
                "the token gives no role here: its claim {claim:?} contains no configured value"
            ))
        })
    }
}

/// Refuses an email that the issuer has not verified: some let users write any address. Some write the truth as a text.
fn require_verified(claims: &Map<String, Value>) -> Result<(), TokenError> {
    const CLAIM: &str = "email_verified";
    match claims.get(CLAIM) {
        Some(Value::Bool(true)) => Ok(()),
        Some(Value::String(text)) if text == "true" => Ok(()),
        Some(_) => Err(TokenError::claim(CLAIM, "is not true")),
        None => Err(TokenError::Missing(CLAIM.to_owned())),
    }
}

/// Finds a claim by its name, or by a dotted path of names.
fn find<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let found = claims.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(claims.get(first)?, |value, name| value.get(name))
    });
    found.filter(|value| !value.is_null())
}

fn bounded(claim: &str, text: &str) -> Result<String, TokenError> {
    if text.is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(TokenError::claim(claim, "is empty, longer than 200 bytes or has control characters"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
