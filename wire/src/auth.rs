//! Authentication: tokens, the keys that verify them, and the caller's identity.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Prefix of every API key.
pub const KEY_PREFIX: &str = "tml-";
/// Prefix of the keys of agent sessions.
pub const AGENT_KEY_PREFIX: &str = "tml-agent-";

/// Request body of `auth/token`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuthTokenRequest {}

/// Response body of `auth/token`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuthTokenResponse {
    /// A JSON Web Token. Clients send it in place of the API key, in `X-API-Key` or as a bearer token.
    pub jwt: String,
}

/// Response body of `/.well-known/jwks.json`: a JSON Web Key Set (RFC 7517).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JwksResponse {
    /// Keys that sign tokens now, and former ones whose tokens are still accepted.
    pub keys: Vec<JwkResponse>,
}

/// A public key (RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JwkResponse {
    /// Key type, always `OKP`.
    pub kty: String,
    /// Curve of the key, always `Ed25519`.
    pub crv: String,
    /// The public key, in base64url.
    pub x: String,
    /// Id of the key, which the header of a token contains.
    pub kid: String,
    /// Algorithm of the signatures, always `EdDSA`.
    pub alg: String,
    /// Use of the key, always `sig`.
    #[serde(rename = "use")]
    pub purpose: String,
}

impl JwkResponse {
    /// Returns an Ed25519 key for signatures.
    pub fn ed25519(kid: String, x: String) -> Self {
        let text = str::to_owned;
        Self { kty: text("OKP"), crv: text("Ed25519"), x, kid, alg: text("EdDSA"), purpose: text("sig") }
    }
}

/// Response body of `admin/signing_keys/rotate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotateSigningResponse {
    /// Number of keys that were withdrawn.
    pub withdrawn: usize,
}

/// Response body of `auth/whoami`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoamiResponse {
    /// Identifies the user, or the key of a program: the claim `sub` of its tokens.
    pub subject: String,
    /// The organisation that owns the objects that the caller sees.
    pub organisation: String,
    /// Whether admins of this organisation manage all others.
    pub operator: bool,
    /// The user who calls; absent for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<WhoamiUser>,
    /// `admin`, `member` or `read-only`.
    pub role: String,
    /// What the caller may change: `train`, `sample`, `checkpoints`, `admin`.
    pub scopes: Vec<String>,
    /// How the server identified the caller, or the caller for whom it issued the token.
    pub credential: WhoamiCredential,
    /// The key of the call, or the key that its token was issued for; absent if it is not in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<WhoamiKey>,
    /// Time at which the key or token of the call expires, in RFC 3339; absent if it never does.
    #[schema(format = DateTime)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A user, as seen by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoamiUser {
    /// Id of the user; absent if an external issuer vouches for a user who is not in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Email address, unique within the organisation.
    pub email: String,
    /// Name for display; any text.
    pub name: String,
}

/// How a server identified a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhoamiCredential {
    /// No credential: the server has no keys.
    None,
    /// A key of the configuration file.
    ConfiguredKey,
    /// A key of the store.
    Key,
    /// A token of the external issuer.
    Issuer,
}

/// An API key, as seen by its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoamiKey {
    /// Number that identifies the key.
    pub id: i64,
    /// Name for display; any text.
    pub name: String,
}
