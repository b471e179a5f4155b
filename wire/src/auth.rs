//! Tokens, the keys that verify them, and who the caller is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The prefix of every API key.
pub const KEY_PREFIX: &str = "tml-";

/// Body of `auth/token`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuthTokenRequest {}

/// Answer of `auth/token`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuthTokenResponse {
    /// A JSON Web Token, which is sent as the key was: in `X-API-Key`, or as a bearer token.
    pub jwt: String,
}

/// Answer of `/.well-known/jwks.json`: a JSON Web Key Set (RFC 7517).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JwksResponse {
    /// The keys with which tokens are signed, former ones included whose tokens are still accepted.
    pub keys: Vec<JwkResponse>,
}

/// A public key (RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JwkResponse {
    /// Always `OKP`.
    pub kty: String,
    /// Always `Ed25519`.
    pub crv: String,
    /// The key, in base64url.
    pub x: String,
    /// Its name, which the header of a token has.
    pub kid: String,
    /// Always `EdDSA`.
    pub alg: String,
    /// Always `sig`.
    #[serde(rename = "use")]
    pub purpose: String,
}

impl JwkResponse {
    /// An Ed25519 key that signs.
    pub fn ed25519(kid: String, x: String) -> Self {
        let text = str::to_owned;
        Self { kty: text("OKP"), crv: text("Ed25519"), x, kid, alg: text("EdDSA"), purpose: text("sig") }
    }
}

/// Answer of `admin/signing_keys/rotate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotateSigningResponse {
    /// How many keys were withdrawn.
    pub withdrawn: usize,
}

/// Answer of `auth/whoami`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoamiResponse {
    /// Names the user, or the key of a program: `sub` of its tokens.
    pub subject: String,
    /// The organisation, whose objects the caller sees.
    pub organisation: String,
    /// Whether the organisation's admins manage all others.
    pub operator: bool,
    /// The user; absent for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<WhoamiUser>,
    /// `admin`, `member` or `read-only`.
    pub role: String,
    /// What it may change: `train`, `sample`, `checkpoints`, `admin`.
    pub scopes: Vec<String>,
    /// By what the server knows the caller, or its token's maker.
    pub credential: WhoamiCredential,
    /// The key of the call, or that its token was made from, where the store has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<WhoamiKey>,
    /// When the key or token of the call expires, if it does.
    #[schema(format = DateTime)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoamiUser {
    /// Absent where the store does not have the user: an external issuer vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Names the user within the organisation.
    pub email: String,
    /// For people.
    pub name: String,
}

/// By what a server knows a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhoamiCredential {
    /// By nothing: it has no keys.
    None,
    /// By a key of its configuration file.
    ConfiguredKey,
    /// By a key of the store.
    Key,
    /// By a token of the external issuer.
    Issuer,
}

/// An API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoamiKey {
    /// Names it.
    pub id: i64,
    /// For people.
    pub name: String,
}
