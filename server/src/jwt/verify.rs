//! Verifies JSON Web Tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{MAX_TOKEN, PublicKey, TokenError};

/// The parts of a token that has not been verified yet.
#[derive(Debug)]
pub(crate) struct Unverified<'a> {
    token: &'a str,
    algorithm: String,
    /// The key that the token names.
    pub(crate) kid: Option<String>,
    /// The issuer that the token names.
    pub(crate) issuer: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// The values that a token must match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    /// The largest accepted difference of clocks, in seconds.
    pub(crate) leeway: i64,
    /// The present, in seconds since the epoch.
    pub(crate) now: i64,
}

impl<'a> Unverified<'a> {
    /// Reads the header and the issuer.
    pub(crate) fn parse(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::TooLong(token.len()));
        }
        let parts: Vec<&str> = token.split('.').collect();
        let (header, payload) = match parts.as_slice() {
            [header, payload, _] => (header, payload),
            [_, _, _, _, _] => return Err(TokenError::Encrypted),
            _ => return Err(TokenError::Malformed("expected three dot-separated segments")),
        };
        let header = decoded(header).ok_or(TokenError::Malformed("the header is not base64url"))?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| {
            TokenError::Malformed("expected the header to be a JSON object with alg and kid as strings")
        })?;
        if header.alg.eq_ignore_ascii_case("none") {
            return Err(TokenError::NotSigned);
        }
        if header.alg.starts_with("HS") {
            return Err(TokenError::SharedSecret);
        }
        if header.crit.is_some() {
            return Err(TokenError::Critical);
        }
        let payload = decoded(payload).ok_or(TokenError::Malformed("the payload is not base64url"))?;
        let claims: Map<String, Value> = serde_json::from_slice(&payload)
            .map_err(|_| TokenError::Malformed("expected the payload to be a JSON object"))?;
        let issuer = text(&claims, "iss")?.to_owned();
        Ok(Self { token, algorithm: header.alg, kid: header.kid, issuer })
    }

    /// Returns the claims if signature, issuer, audience and times are right.
    pub(crate) fn verify(&self, key: &PublicKey, expected: Expected<'_>) -> Result<Map<String, Value>, TokenError> {
        let algorithm = || TokenError::Algorithm(key.names());
        let [first, ..] = key.algorithms.as_slice() else { return Err(algorithm()) };
        if !key.algorithms.iter().any(|allowed| format!("{allowed:?}") == self.algorithm) {
            return Err(algorithm());
        }
        let mut validation = Validation::new(*first);
        validation.algorithms.clone_from(&key.algorithms);
        validation.set_issuer(&[expected.issuer]);
        validation.set_audience(&[expected.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // By the clock of the service, below.
        validation.validate_exp = false;
        let data = decode::<Map<String, Value>>(self.token, &key.key, &validation);
        let claims = data.map_err(|error| refusal(error.into_kind(), algorithm))?.claims;
        check_times(&claims, expected)?;
        Ok(claims)
    }
}

fn refusal(kind: ErrorKind, algorithm: impl Fn() -> TokenError) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName | ErrorKind::UnsupportedAlgorithm => algorithm(),
        ErrorKind::InvalidIssuer => TokenError::Issuer,
        ErrorKind::InvalidAudience => TokenError::Audience,
        ErrorKind::MissingRequiredClaim(name) => TokenError::Missing(name),
        ErrorKind::Base64(_) => TokenError::Malformed("the signature is not base64url"),
        _ => TokenError::Malformed("expected a signed JSON Web Token"),
    }
}

fn check_times(claims: &Map<String, Value>, expected: Expected<'_>) -> Result<(), TokenError> {
    let Expected { now, leeway, .. } = expected;
    let expires = seconds(claims, "exp")?.ok_or_else(|| TokenError::Missing("exp".to_owned()))?;
    if expires.saturating_add(leeway) <= now {
        return Err(TokenError::Expired);
    }
    // A clock may be behind that of the issuer.
    let ahead = now.saturating_add(leeway.max(SKEW));
    if seconds(claims, "nbf")?.is_some_and(|begins| begins > ahead) {
        return Err(TokenError::NotYet);
    }
    if seconds(claims, "iat")?.is_some_and(|issued| issued > ahead) {
        return Err(TokenError::IssuedInFuture);
    }
    Ok(())
}

/// The largest accepted lead of an issuer's clock, in seconds.
const SKEW: i64 = 60;

/// Reads a time in seconds since the epoch, if the claim is present.
pub(crate) fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenError> {
    /// The end of the year 9999.
    const MOST: f64 = 253_402_300_799.0;
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(time) if (0.0..=MOST).contains(&time) => Ok(Some(time as i64)),
            _ => Err(TokenError::claim(name, "is not a time in seconds")),
        },
    }
}

/// Reads a required string.
pub(crate) fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Result<&'a str, TokenError> {
    match claims.get(name) {
        None | Some(Value::Null) => Err(TokenError::Missing(name.to_owned())),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(TokenError::claim(name, "is not a string")),
    }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
