//! Who may read the metrics.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

use super::PATH;
use crate::auth::equal;
use crate::error::ApiError;

/// Who may read the metrics. They contain no secrets, but show how busy the service is, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches the address.
    Open,
    /// Who sends this token, stored as its SHA-256.
    Token([u8; 32]),
    /// Nobody: the path looks like any that is not served.
    Off,
}

impl Access {
    /// A token always guards; without one the metrics are open on loopback and off elsewhere.
    pub fn new(token: Option<&str>, loopback: bool) -> Self {
        match token {
            Some(token) => Self::Token(Sha256::digest(token.as_bytes()).into()),
            None if loopback => Self::Open,
            None => Self::Off,
        }
    }

    /// Checks `Authorization: Bearer TOKEN`.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let expected = match self {
            Self::Open => return Ok(()),
            Self::Off => return Err(ApiError::Unsupported(PATH.to_owned())),
            Self::Token(expected) => expected,
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let given = given.ok_or(ApiError::Unauthorized("the header Authorization: Bearer TOKEN is missing"))?;
        let digest: [u8; 32] = Sha256::digest(given.trim().as_bytes()).into();
        if equal(expected, &digest) { Ok(()) } else { Err(ApiError::Unauthorized("the metrics token is wrong")) }
    }
}
