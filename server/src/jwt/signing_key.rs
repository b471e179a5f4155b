//! Private keys of the service.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::PublicKey;

/// An Ed25519 key that signs tokens.
#[derive(Clone)]
pub(crate) struct SigningKey {
    /// The key's thumbprint (RFC 7638), which names it in the header of tokens.
    kid: String,
    key: EncodingKey,
    public: Vec<u8>,
}

/// A public key as the service publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicJwk {
    pub(crate) kid: String,
    /// The key, in base64url.
    pub(crate) x: String,
}

impl SigningKey {
    /// Makes the key from a seed of 32 bytes; `None` when `seed` has another length.
    pub(crate) fn from_seed(seed: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let public = pair.public_key().as_ref().to_vec();
        Some(Self { kid: thumbprint(&public), key: EncodingKey::from_ed_der(seed), public })
    }

    pub(crate) fn kid(&self) -> &str {
        &self.kid
    }

    /// Makes a token with these claims.
    ///
    /// # Errors
    /// Fails if the claims can't be written as JSON.
    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<String, jsonwebtoken::errors::Error> {
        let header = Header { kid: Some(self.kid.clone()), ..Header::new(Algorithm::EdDSA) };
        encode(&header, claims, &self.key)
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        PublicKey::ed25519(self.kid.clone(), &self.public)
    }

    /// The public key, as the service publishes it.
    pub(crate) fn public_jwk(&self) -> PublicJwk {
        PublicJwk { kid: self.kid.clone(), x: URL_SAFE_NO_PAD.encode(&self.public) }
    }
}

fn thumbprint(public: &[u8]) -> String {
    let x = URL_SAFE_NO_PAD.encode(public);
    let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(Sha256::digest(canonical.as_bytes()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_published_key_and_its_thumbprint_are_those_of_the_rfc() {
        let seed = URL_SAFE_NO_PAD.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap();
        let key = SigningKey::from_seed(&seed).unwrap();
        let published = key.public_jwk();
        assert_eq!(published.x, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        assert_eq!(published.kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        assert!(SigningKey::from_seed(&seed[1..]).is_none());
    }
}
