//! JSON Web Tokens (RFC 7519) and the keys that sign and verify them.
//!
//! The key decides which algorithms are accepted, never the token. `none` is refused, and so is a public key that is
//! used as a shared secret. Keys in the header (`jku`, `jwk`, `x5u`, `x5c`) are ignored.

mod error;
mod provider;
mod public_key;
mod signing_key;
mod verify;

pub use self::error::TokenError;
pub(crate) use self::public_key::{PublicKey, PublicKeys};
pub(crate) use self::signing_key::{PublicJwk, SigningKey};
pub(crate) use self::verify::{Expected, Unverified, seconds, text};

/// The longest accepted token, in bytes.
pub(crate) const MAX_TOKEN: usize = crate::budgets::TOKEN_BYTES;

/// The first characters of every JSON object in base64, and so of every token.
pub(crate) const PREFIX: &str = "eyJ";

/// Installs the cryptography. Must be called before any token is made or verified; repeated calls do nothing.
pub(crate) fn initialise() {
    provider::install();
}
