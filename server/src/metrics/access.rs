//! The rule for who may read the metrics.

use axum::http::HeaderMap;
use sha2::{Digest, Sha256};
use trainyard_http::peer::is_forwarded;

use super::PATH;
use crate::auth::browser::names_this_machine;
use crate::auth::{bearer, equal};
use crate::error::ApiError;

/// The reason to refuse a forwarded request for metrics that are open on loopback.
const FORWARDED: &str =
    "a proxy passed this request on, and the metrics are open only to this machine: set --metrics-token";

/// The reason to refuse a request that names another host.
const OTHER_HOST: &str = "the request's Host (or Origin) is not localhost, 127.0.0.1 or [::1], and the metrics are open only to \
    this machine: use such an address, or set --metrics-token";

/// The rule for who may read the metrics. They contain no secrets, but show how busy the service is, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody who can reach the address may read them.
    Open,
    /// Callers with this token may read them; its SHA-256 is stored.
    Token([u8; 32]),
    /// Nobody may read them: the path looks like one that does not exist.
    Off,
}

impl Access {
    /// Decides who may read the metrics. If there is a token, only its holders may. Otherwise, the metrics are open on
    /// a private loopback address, and off elsewhere.
    pub fn new(token: Option<&str>, private: bool) -> Self {
        match token {
            Some(token) => Self::Token(Sha256::digest(token.as_bytes()).into()),
            None if private => Self::Open,
            None => Self::Off,
        }
    }

    /// Checks `Authorization: Bearer TOKEN`.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let expected = match self {
            // On loopback a proxy would make them everybody's.
            Self::Open if is_forwarded(headers) => return Err(ApiError::Forbidden(FORWARDED)),
            // A page whose host leads here would read them.
            Self::Open if !names_this_machine(headers) => return Err(ApiError::Forbidden(OTHER_HOST)),
            Self::Open => return Ok(()),
            Self::Off => return Err(ApiError::Unsupported(PATH.to_owned())),
            Self::Token(expected) => expected,
        };
        let given =
            bearer(headers).ok_or(ApiError::Unauthorized("the header Authorization: Bearer TOKEN is missing"))?;
        let digest: [u8; 32] = Sha256::digest(given.as_bytes()).into();
        if equal(expected, &digest) { Ok(()) } else { Err(ApiError::Unauthorized("the metrics token is wrong")) }
    }
}
