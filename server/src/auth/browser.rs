//! Sessions of browsers: a token of the service in a cookie that scripts can't read, and a second token that every
//! request which changes something must carry, so that pages of other sites can't forge such requests.

use std::time::Duration;

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::seed::equal;
use crate::error::ApiError;

/// The header that carries the second token.
pub(crate) const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");
/// The longest lifetime of a session.
pub(crate) const LIFETIME: Duration = Duration::from_secs(12 * 3_600);
const NAME: &str = "trainyard_session";

/// Reads the token of a browser's session.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == NAME).map(|(_, token)| token)
}

/// Derives the second token of a session. It can't be made without the cookie, which no script can read.
pub(crate) fn csrf_of(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(token))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::new_with_prefix(b"trainyard csrf\0").chain_update(token.as_bytes()).finalize().into()
}

/// Refuses a request that changes something and lacks the second token of its session.
pub(super) fn check(method: &Method, headers: &HeaderMap, token: &str) -> Result<(), ApiError> {
    if method.is_safe() {
        return Ok(());
    }
    let given = headers.get(CSRF).and_then(|value| URL_SAFE_NO_PAD.decode(value.as_bytes()).ok());
    let given: Option<[u8; 32]> = given.and_then(|bytes| bytes.try_into().ok());
    if given.is_some_and(|given| equal(&given, &digest(token))) {
        return Ok(());
    }
    Err(ApiError::Forbidden("a request of a browser's session needs the session's token in the header X-CSRF-Token"))
}

/// Returns whether a request names a session, valid or not.
///
/// # Errors
/// Fails if the request changes something and lacks the second token of its session.
pub(crate) fn has_session(method: &Method, headers: &HeaderMap) -> Result<bool, ApiError> {
    session(headers).map_or(Ok(false), |token| check(method, headers, token).map(|()| true))
}

/// The header that begins a session, or ends it when the token is empty.
pub(crate) fn cookie(token: &str, seconds: u64, https: bool) -> String {
    let secure = if https { "; Secure" } else { "" };
    format!("{NAME}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// Returns whether a browser addresses this machine by a name that is always its own; the owner of another name could
/// have made it lead here. A page that sends the request must be of this machine too.
pub(crate) fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    is_this_machine(host)
        && headers.get(ORIGIN).is_none_or(|origin| {
            let origin = origin.to_str().unwrap_or_default();
            origin.split_once("://").is_some_and(|(_, host)| is_this_machine(host))
        })
}

/// Returns whether a name, with or without a port, always means this machine.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let sent = headers(&[(COOKIE, "a=b; trainyard_session=eyJx; c=d")]);
        assert_eq!(session(&sent), Some("eyJx"));
        assert_eq!(session(&headers(&[(COOKIE, "xtrainyard_session=eyJx")])), None);
        assert!(cookie("eyJx", 60, true).ends_with("HttpOnly; SameSite=Strict; Max-Age=60; Secure"));
    }

    #[test]
    fn what_changes_something_carries_the_second_token() {
        let none = HeaderMap::new();
        assert!(check(&Method::GET, &none, "eyJx").is_ok());
        assert!(check(&Method::POST, &none, "eyJx").is_err());
        let other = headers(&[(CSRF, &csrf_of("eyJy"))]);
        assert!(check(&Method::DELETE, &other, "eyJx").is_err());
        let right = headers(&[(CSRF, &csrf_of("eyJx"))]);
        assert!(check(&Method::DELETE, &right, "eyJx").is_ok());
    }

    #[test]
    fn only_loopback_names_this_machine() {
        for (host, is_own) in [
            ("localhost", true),
            ("localhost:8000", true),
            ("127.0.0.1:8000", true),
            ("[::1]:8000", true),
            ("[::1]", true),
            ("evil.example:8000", false),
            ("127.0.0.1.evil.example", false),
            ("10.0.0.1:8000", false),
            ("", false),
        ] {
            assert_eq!(names_this_machine(&headers(&[(HOST, host)])), is_own, "{host}");
        }
        for (origin, is_own) in [
            ("http://localhost:3000", true),
            ("http://[::1]:8000", true),
            ("http://evil.example:8000", false),
            ("null", false),
        ] {
            let sent = headers(&[(HOST, "127.0.0.1:8000"), (ORIGIN, origin)]);
            assert_eq!(names_this_machine(&sent), is_own, "{origin}");
        }
    }
}
