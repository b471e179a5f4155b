//! Reading the published keys of an issuer over HTTP.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;

use crate::jwt::PublicKeys;

/// The time limit of a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The time limit of a whole answer.
pub(super) const TOTAL: Duration = Duration::from_secs(10);
/// The largest accepted answer, in bytes.
const MOST: usize = 256 << 10;

/// The place where an issuer publishes its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A URL of the key set.
    Keys(String),
    /// The URL in its OpenID configuration, which is below the issuer's URL.
    Discovery,
}

/// Error when fetching the keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{0}: {1}")]
    Http(String, String),
    #[error("{0}: the answer has the status {1}")]
    Status(String, StatusCode),
    #[error("{0}: the answer is larger than {MOST} bytes")]
    TooLarge(String),
    #[error("{0}: {1}")]
    Content(String, &'static str),
}

/// Makes an HTTP client for an issuer. It follows no redirects, since the address is configured.
pub(super) fn client() -> reqwest::Result<Client> {
    // The first one that is installed counts; there is but one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().connect_timeout(CONNECT).timeout(TOTAL).redirect(Policy::none()).build()
}

/// Returns whether nobody on the way can change the answer of a URL: it is HTTPS, or on this machine.
pub(crate) fn is_protected(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    match url.scheme() {
        "https" => !host.is_empty(),
        "http" => is_loopback,
        _ => false,
    }
}

/// Returns whether the configuration of an issuer may name this URL for its keys. An issuer elsewhere must not make
/// the server call this machine.
fn may_lead_to(issuer: &str, keys: &str) -> bool {
    let is_https = |url: &str| Url::parse(url).is_ok_and(|url| url.scheme() == "https");
    is_protected(keys) && (is_https(keys) || !is_https(issuer))
}

/// Fetches the keys; also returns the reasons why some are not used.
pub(super) async fn fetch(
    client: &Client,
    source: &KeySource,
    issuer: &str,
) -> Result<(PublicKeys, Vec<&'static str>), FetchError> {
    let url = match source {
        KeySource::Keys(url) => url.clone(),
        KeySource::Discovery => discover(client, issuer).await?,
    };
    let set = get(client, &url).await?;
    PublicKeys::from_set(&set).ok_or(FetchError::Content(url, "the answer is not a JSON Web Key Set"))
}

async fn discover(client: &Client, issuer: &str) -> Result<String, FetchError> {
    let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let configuration = get(client, &url).await?;
    if configuration.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(FetchError::Content(url, "the answer names another issuer"));
    }
    match configuration.get("jwks_uri").and_then(Value::as_str) {
        Some(keys) if may_lead_to(issuer, keys) => Ok(keys.to_owned()),
        Some(_) => Err(FetchError::Content(url, "the jwks_uri of the answer is not HTTPS")),
        None => Err(FetchError::Content(url, "the answer has no jwks_uri")),
    }
}

async fn get(client: &Client, url: &str) -> Result<Value, FetchError> {
    let failed = |error: reqwest::Error| FetchError::Http(url.to_owned(), causes(&error));
    let mut response = client.get(url).send().await.map_err(failed)?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(url.to_owned(), response.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MOST {
            return Err(FetchError::TooLarge(url.to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|_| FetchError::Content(url.to_owned(), "the answer is not JSON"))
}

/// Formats an error with its causes; the outermost message is not specific enough.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{is_protected, may_lead_to};

    #[test]
    fn an_issuer_elsewhere_has_its_keys_elsewhere() {
        assert!(may_lead_to("https://idp.example", "https://keys.example/a"));
        assert!(may_lead_to("http://127.0.0.1:80", "http://127.0.0.1:80/keys"));
        for keys in ["http://127.0.0.1/admin", "HTTP://localhost/", "http://[::1]:9000/", "file:///etc/passwd"] {
            assert!(!may_lead_to("https://idp.example", keys), "{keys}");
        }
    }

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        for url in ["https://idp.example/keys", "http://127.0.0.1:8080/keys", "http://[::1]/", "http://localhost/k"] {
            assert!(is_protected(url), "{url}");
        }
        for url in
            ["http://idp.example/keys", "http://127.0.0.1.example/", "ftp://localhost/", "file:///etc", "keys", ""]
        {
            assert!(!is_protected(url), "{url}");
        }
    }
}
