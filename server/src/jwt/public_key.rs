//! Public keys, as issuers publish them (RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::Value;
use sha2::{Digest, Sha256};
use trainyard_protocol::hex;

use super::TokenError;

/// The shortest modulus that `ring` accepts.
const MIN_RSA_BYTES: usize = 256;

/// A key that verifies signatures.
#[derive(Clone, Debug)]
pub(crate) struct PublicKey {
    /// The name of the key in the header of tokens.
    pub(crate) kid: Option<String>,
    /// Half of the SHA-256 of the key's parameters, in hexadecimal; independent of the key's name.
    pub(crate) fingerprint: String,
    /// The algorithms that the key may be used with.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

impl PublicKey {
    pub(crate) fn ed25519(kid: String, key: &[u8]) -> Self {
        let fingerprint = fingerprint(key);
        Self { kid: Some(kid), fingerprint, algorithms: vec![Algorithm::EdDSA], key: DecodingKey::from_ed_der(key) }
    }

    /// Reads a published key; the error is the reason why the key can't be used.
    fn from_jwk(jwk: &Jwk) -> Result<Self, &'static str> {
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return Err("the key is not for signatures");
        }
        if common.key_operations.as_ref().is_some_and(|operations| !operations.contains(&KeyOperations::Verify)) {
            return Err("the key is not for the verification of signatures");
        }
        let possible = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms(),
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[Algorithm::ES256],
                EllipticCurve::P384 => &[Algorithm::ES384],
                _ => return Err("the curve is not supported"),
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
            AlgorithmParameters::OctetKey(_) => return Err("the key is a shared secret"),
            _ => return Err("the key type is not supported"),
        };
        let algorithms = match common.key_algorithm {
            None => possible.to_vec(),
            Some(only) => match Algorithm::try_from(only) {
                Ok(only) if possible.contains(&only) => vec![only],
                _ => return Err("the algorithm is not supported, or does not match the key type"),
            },
        };
        let key = DecodingKey::from_jwk(jwk).map_err(|_| "the parameters are not base64url")?;
        if let jsonwebtoken::DecodingKeyKind::RsaModulusExponent { n, .. } = key.kind()
            && n.len() < MIN_RSA_BYTES
        {
            return Err("the key is shorter than 2048 bits");
        }
        let parameters = serde_json::to_vec(&jwk.algorithm).map_err(|_| "the parameters are not JSON")?;
        Ok(Self { kid: common.key_id.clone(), fingerprint: fingerprint(&parameters), algorithms, key })
    }

    pub(super) fn names(&self) -> String {
        self.algorithms.iter().map(|algorithm| format!("{algorithm:?}")).collect::<Vec<_>>().join(", ")
    }
}

fn fingerprint(parameters: &[u8]) -> String {
    hex(&Sha256::digest(parameters)[..16])
}

/// The keys of an issuer.
#[derive(Clone, Debug, Default)]
pub(crate) struct PublicKeys(Vec<PublicKey>);

impl PublicKeys {
    pub(crate) fn new(keys: Vec<PublicKey>) -> Self {
        Self(keys)
    }

    /// Reads the keys of a published set that verify signatures, and the reasons why the others don't. Returns `None`
    /// when `set` is not a key set.
    pub(crate) fn from_set(set: &Value) -> Option<(Self, Vec<&'static str>)> {
        let (mut keys, mut unusable) = (Vec::new(), Vec::new());
        for key in set.get("keys")?.as_array()? {
            let read = serde_json::from_value(key.clone()).map_err(|_| "a parameter is missing or invalid");
            match read.and_then(|jwk: Jwk| PublicKey::from_jwk(&jwk)) {
                Ok(key) => keys.push(key),
                Err(reason) => unusable.push(reason),
            }
        }
        Some((Self(keys), unusable))
    }

    /// Returns whether the set contains the key with this fingerprint.
    pub(crate) fn contains(&self, fingerprint: &str) -> bool {
        self.0.iter().any(|key| key.fingerprint == fingerprint)
    }

    /// Counts the keys of `other` that are missing here.
    pub(crate) fn missing_of(&self, other: &Self) -> usize {
        other.0.iter().filter(|key| !self.contains(&key.fingerprint)).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the key with this name; without a name, the only key.
    pub(crate) fn find(&self, kid: Option<&str>) -> Result<&PublicKey, TokenError> {
        match (kid, self.0.as_slice()) {
            (Some(_), keys) => keys.iter().find(|key| key.kid.as_deref() == kid).ok_or(TokenError::UnknownKey),
            (None, [only]) => Ok(only),
            (None, []) => Err(TokenError::UnknownKey),
            (None, _) => Err(TokenError::NoKeyId),
        }
    }
}
