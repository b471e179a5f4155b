//! JSON Web Tokens (RFC 7519) and the keys that sign and verify them.
//!
//! The key decides which algorithms are accepted, never the token: `none`, and a public key that is taken for a shared
//! secret, get nowhere. What the header says of further keys (`jku`, `jwk`, `x5u`, `x5c`) is ignored.

mod error;
mod provider;
mod public_key;
mod signing_key;
mod verify;

pub use self::error::TokenError;
pub(crate) use self::public_key::{PublicKey, PublicKeys};
pub(crate) use self::signing_key::{PublicJwk, SigningKey};
pub(crate) use self::verify::{Expected, Unverified, seconds, text};

/// The longest token that is looked at, in bytes.
pub(crate) const MAX_TOKEN: usize = 8_192;

/// What every JSON object in base64 begins with, and so every token.
pub(crate) const PREFIX: &str = "eyJ";

/// Has to be called before any token is made or verified; repetitions do nothing.
pub(crate) fn initialise() {
    provider::install();
}
