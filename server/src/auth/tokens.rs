//! Tokens of the service: their claims and their present holders.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Role, Scope, Timestamp};

use super::principal::{Credential, Identity, Principal};
use super::signing_keys::SigningKeys;
use crate::error::ApiError;
use crate::jwt::{Expected, TokenError, Unverified};
use crate::random::secret_bytes;

/// The issuer and the audience of the tokens.
pub(super) const SERVICE: &str = "trainyard";

/// The claims of a token.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Claims {
    iss: String,
    aud: String,
    sub: String,
    iat: i64,
    nbf: i64,
    exp: i64,
    jti: String,
    /// The session of a browser to which the token belongs; it can be ended before the token expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<String>,
    tenant: String,
    /// The organisation, as the Tinker SDK expects it.
    org_id: String,
    /// Empty for programs, as the Tinker SDK expects it.
    email: String,
    role: String,
    scopes: Vec<String>,
    credential: Origin,
}

/// The credential that a token was made from. The token gives no more access than the credential has now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Origin {
    /// No caller: the server has no keys.
    None,
    /// A key of the configuration file.
    Seed { fingerprint: String },
    /// A key of the store.
    Key { id: i64 },
    /// A token of the external issuer: its subject, and the fingerprint of the key that signed it; `None` in tokens of
    /// older versions.
    Issuer {
        subject: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
}

impl Origin {
    /// Returns the credential of a holder.
    ///
    /// # Errors
    /// [`ApiError::NotAllowed`] for the key of an agent session: a token would outlast its restriction.
    fn of(holder: &Principal) -> Result<Self, ApiError> {
        Ok(match (&holder.credential, &holder.key) {
            (_, Some(found)) => Self::Key { id: found.key.id },
            (Credential::Seed(fingerprint), None) => Self::Seed { fingerprint: fingerprint.clone() },
            (Credential::Issuer { subject, key }, None) => Self::Issuer { subject: subject.clone(), key: key.clone() },
            (Credential::None | Credential::Key, None) => Self::None,
            (Credential::Agent(session), None) => {
                return Err(ApiError::NotAllowed(format!("agent session {session}: its key can't be exchanged")));
            }
        })
    }
}

/// A valid token of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) origin: Origin,
    pub(super) identity: Identity,
    pub(super) scopes: Vec<Scope>,
    pub(super) expires_at: Timestamp,
    /// The key of the service that signed the token, if one did.
    pub(super) signed_by: Option<String>,
    /// The session of a browser to which the token belongs.
    pub(super) session: Option<String>,
}

/// The purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Calls,
    /// The session of a browser, which may be ended before the token expires.
    Session,
}

/// Makes a token for the holder of another credential.
pub(super) async fn make(
    keys: &SigningKeys,
    holder: &Principal,
    purpose: Purpose,
    lifetime: Duration,
    now: Timestamp,
) -> Result<String, ApiError> {
    let issued = now.as_millis().div_euclid(1_000);
    let end = now.plus(lifetime);
    // No longer than what it was made from.
    let end = holder.expires_at.map_or(end, |own| own.min(end));
    let jti: u128 = secret_bytes().map(u128::from_be_bytes).map_err(|error| ApiError::Internal(error.to_string()))?;
    let jti = format!("{jti:032x}");
    let claims = Claims {
        iss: SERVICE.to_owned(),
        aud: SERVICE.to_owned(),
        sub: holder.subject(),
        iat: issued,
        nbf: issued,
        // At least a second, since a client computes with the difference.
        exp: end.as_millis().div_euclid(1_000).max(issued + 1),
        sid: (purpose == Purpose::Session).then(|| jti.clone()),
        jti,
        tenant: holder.tenant.to_string(),
        org_id: holder.tenant.to_string(),
        email: holder.email.clone().unwrap_or_default(),
        role: holder.role.as_str().to_owned(),
        scopes: holder.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        credential: Origin::of(holder)?,
    };
    let signed = keys.signer().await?.sign(&claims);
    signed.map_err(|error| ApiError::Internal(format!("failed to sign a token: {error}")))
}

/// Verifies a token that names this service as its issuer.
pub(super) async fn accept(keys: &SigningKeys, token: &Unverified<'_>, now: Timestamp) -> Result<Accepted, ApiError> {
    let keys = keys.public_keys(token.kid.as_deref()).await?;
    let now = now.as_millis().div_euclid(1_000);
    let expected = Expected { issuer: SERVICE, audience: SERVICE, leeway: 0, now };
    let key = keys.find(token.kid.as_deref())?;
    let claims = token.verify(key, expected)?;
    let claims: Claims = serde_json::from_value(Value::Object(claims))
        .map_err(|_| TokenError::Malformed("the claims are not those of a token of this server"))?;
    let role = Role::from_text(&claims.role)
        .ok_or(TokenError::claim("role", "is not a role: expected admin, member or read-only"))?;
    Ok(Accepted {
        origin: claims.credential.clone(),
        identity: Identity {
            organisation: TenantId::new(claims.tenant),
            subject: match claims.credential {
                Origin::Issuer { subject, .. } => subject,
                _ => claims.sub,
            },
            email: Some(claims.email).filter(|email| !email.is_empty()),
            role,
        },
        scopes: claims.scopes.iter().filter_map(|scope| Scope::from_text(scope)).collect(),
        expires_at: Timestamp(claims.exp.saturating_mul(1_000)),
        signed_by: key.kid.clone(),
        session: claims.sid,
    })
}
