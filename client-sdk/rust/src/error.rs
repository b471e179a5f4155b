//! Errors of the client.

use serde_json::Value;

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The request was accepted, but failed when it was executed.
    #[error(transparent)]
    Failed(#[from] RequestFailed),
    /// The server could not be reached, or stopped answering, for as long as the retry policy allows.
    #[error("{place}: {source}")]
    Transport {
        /// Method and path of the request.
        place: String,
        /// Failure of the last attempt.
        source: reqwest::Error,
    },
    /// The result is still missing when the time limit ends; the caller may ask again.
    #[error("{0}: no result yet")]
    Timeout(String),
    /// An answer that this client does not understand.
    #[error("{0}")]
    Protocol(String),
    /// A value can't be sent.
    #[error("{0}")]
    Value(String),
    /// The client's settings are wrong.
    #[error("{0}")]
    Configuration(String),
}

impl Error {
    /// Returns the HTTP status with which the server refused the request.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api(refusal) => Some(refusal.status),
            _ => None,
        }
    }

    /// Returns whether the server certainly did not accept the request.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status().is_some_and(|status| status < 500 && status != 408)
    }
}

/// A refusal by the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {detail}")]
#[non_exhaustive]
pub struct ApiError {
    /// HTTP status: 400, 413, 415 and 422 for a wrong request, 401 and 403 for its key, 404 for something that does not
    /// exist, 410 for something that has ended, 429 for a quota or a full queue, 5xx when the service fails.
    pub status: u16,
    /// Description of the problem, naming the field.
    pub detail: String,
    /// Id of the HTTP request, which the server's log contains too.
    pub request_id: Option<String>,
}

impl ApiError {
    /// Reads a refusal: `detail` of the Tinker API, `error.message` of the others, or the text of a proxy.
    pub(crate) fn read(status: u16, request_id: Option<String>, body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let named = json["detail"].as_str().or_else(|| json["error"]["message"].as_str());
        let detail = named.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
        Self { status, detail, request_id }
    }
}

/// The failure of a request that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RequestFailed {
    /// Description of the problem, naming the field.
    pub message: String,
    /// Party at fault for the failure.
    pub category: Category,
    /// Id of the request's future.
    pub request_id: String,
}

/// Party at fault for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// The request is at fault.
    User,
    /// The service is at fault.
    Server,
    /// The party at fault is unknown.
    Unknown,
}

impl Category {
    pub(crate) fn of(name: Option<&str>) -> Self {
        match name {
            Some("user") => Self::User,
            Some("server") => Self::Server,
            _ => Self::Unknown,
        }
    }
}
