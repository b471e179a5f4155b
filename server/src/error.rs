//! The failures that HTTP answers, with their statuses.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use trainyard_http::answer::json_response;
use trainyard_protocol::{OpError, redacted};
use trainyard_scheduler::{self as scheduler, Origin, Refusal};
use trainyard_storage::StorageError;
use trainyard_wire::auth::KEY_PREFIX;

use crate::features::NotInBuild;
use crate::jwt::TokenError;

/// The time after which a client may repeat a request that a full disk refused. Clients repeat a request ten times:
/// that is some minutes.
const NO_SPACE_RETRY_SECONDS: u64 = 20;

/// Tells the official SDK whether to repeat a request.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A refused request. The text is for the client, except that of [`ApiError::Internal`].
///
/// Status 409 is not used: clients retry it for minutes.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The key is missing, malformed or unknown.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The token is not accepted; the client may use another one.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The caller's key does not allow this.
    #[error("{0}")]
    NotAllowed(String),
    /// The signature of a download is wrong.
    #[error("{0}")]
    Forbidden(&'static str),
    /// This tenant has no object with this id or path.
    #[error("{what} {id:?} does not exist")]
    NotFound {
        /// The kind of object.
        what: &'static str,
        /// The id as the client sent it.
        id: String,
    },
    /// The server does not serve this path.
    #[error("{0} is not supported by this server")]
    Unsupported(String),
    /// The path needs a feature that this build lacks.
    #[error(transparent)]
    NotInBuild(#[from] NotInBuild),
    /// The server serves this path with other methods.
    #[error("{method} is not allowed on {path}")]
    MethodNotAllowed {
        /// The method of the request.
        method: String,
        /// The path of the request.
        path: String,
    },
    /// The object existed and was removed.
    #[error("{0}")]
    Gone(String),
    /// The body arrives too slowly.
    #[error("{0}")]
    TooSlow(String),
    /// The body is larger than the limit, before or after decompression.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The endpoint does not read this content type or content encoding.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// The identity was used before with other content.
    #[error("{0}")]
    Mismatch(String),
    /// A field is invalid; the text names it.
    #[error("{0}")]
    Invalid(String),
    /// Too much is queued; the same request may be sent again.
    #[error("{message}")]
    Busy {
        /// The text for the client, which names the full queue or budget.
        message: String,
        /// The time after which to try again.
        retry_after_seconds: u32,
    },
    /// The tenant has used up a quota; the same request may be sent again.
    #[error("{refusal}")]
    Quota {
        /// The quota that the request would exceed.
        refusal: Refusal,
        /// Whether a client that repeats requests by itself should report this instead.
        is_final: bool,
    },
    /// A disk is full, or almost; the same request may be sent again.
    #[error("{0}")]
    NoSpace(String),
    /// The store can't be reached now.
    #[error("{0}; try again")]
    Unavailable(String),
    /// The models are still loading.
    #[error("the models are still loading")]
    NotReady,
    /// A fault of the service: the text is only logged.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    /// Makes the error of an invalid field.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// The text for the log: ids and paths, but nothing else from the request.
    fn reason(&self) -> String {
        match self {
            Self::NotFound { what, id } if is_plain(id) => format!("{what} {id} does not exist"),
            Self::Unsupported(path) if is_plain(path) => format!("{path} is not supported by this server"),
            other => redacted(&other.to_string()),
        }
    }

    /// The text for the client. Logs internal errors.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Internal(text) => {
                let id = Origin::current().map(|origin| origin.call);
                tracing::error!(error = %text, x_request_id = id.as_deref(), "a request failed");
                "internal error; the server's log has the details".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// The challenge to the caller (RFC 6750). Clients make a new token after `invalid_token`.
    fn challenge(&self) -> Option<&'static str> {
        match self {
            Self::Unauthorized(_) => Some("Bearer realm=\"trainyard\""),
            Self::Token(_) => Some("Bearer realm=\"trainyard\", error=\"invalid_token\""),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) | Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) | Self::NotAllowed(_) => StatusCode::FORBIDDEN,
            Self::NotFound { .. } | Self::Unsupported(_) | Self::NotInBuild(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Gone(_) => StatusCode::GONE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Mismatch(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Busy { .. } | Self::Quota { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotReady | Self::NoSpace(_) | Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let detail = self.shown();
        let mut body = serde_json::json!({ "detail": &detail });
        if let Self::Quota { refusal: Refusal { quota, limit, used, .. }, .. } = &self {
            body["quota"] = quota.name().into();
            body["limit"] = (*limit).into();
            body["used"] = (*used).into();
        }
        if let Some(origin) = Origin::current() {
            body["x_request_id"] = (*origin.call).into();
        }
        let mut response = json_response(self.status(), &body);
        response.extensions_mut().insert(Reason(self.reason()));
        response.extensions_mut().insert(Detail(detail));
        let retry_after = match &self {
            Self::Busy { retry_after_seconds, .. } => Some(u64::from(*retry_after_seconds)),
            Self::NoSpace(_) => Some(NO_SPACE_RETRY_SECONDS),
            Self::Quota { refusal, .. } => Some(refusal.retry_after.as_secs().max(1)),
            _ => None,
        };
        if let Some(challenge) = self.challenge() {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if matches!(self, Self::Quota { is_final: true, .. }) {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The reason of a refusal, without the request's content. Travels with the answer, for the log.
#[derive(Clone, Debug)]
pub(crate) struct Reason(pub(crate) String);

/// The text for the client. Travels with the answer, for APIs that write it in another form.
#[derive(Clone, Debug)]
pub(crate) struct Detail(pub(crate) String);

/// Formats a failure as an event, for answers that consist of events. Travels with the answer, for code that may end
/// it.
#[derive(Clone, Debug)]
pub(crate) struct FailureEvent(pub(crate) fn(&ApiError) -> String);

/// Returns whether a text may be an id or a path of this API.
fn is_plain(text: &str) -> bool {
    const MOST: usize = 200;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:/.%".contains(&byte);
    text.len() <= MOST && text.bytes().all(plain) && !text.contains(KEY_PREFIX)
}

impl From<scheduler::Error> for ApiError {
    fn from(error: scheduler::Error) -> Self {
        match error {
            scheduler::Error::NotFound { what, id } => Self::NotFound { what, id },
            error @ (scheduler::Error::Gone { .. }
            | scheduler::Error::SnapshotCollected { .. }
            | scheduler::Error::SessionFinished { .. }) => Self::Gone(error.to_string()),
            scheduler::Error::Mismatch(message) => Self::Mismatch(message),
            scheduler::Error::Quota(refusal) => Self::Quota { refusal, is_final: false },
            scheduler::Error::Invalid(message) => Self::Invalid(message),
            error @ scheduler::Error::TooManyReads(_) => {
                Self::Busy { message: error.to_string(), retry_after_seconds: 1 }
            }
            error @ scheduler::Error::NoSpace(_) => Self::NoSpace(error.to_string()),
            error @ scheduler::Error::SeqGap { .. } => Self::Invalid(error.to_string()),
            error @ (scheduler::Error::Unavailable(_) | scheduler::Error::Tls(_) | scheduler::Error::Conflict(_)) => {
                Self::Unavailable(error.to_string())
            }
            error @ scheduler::Error::Store(..) => Self::Internal(error.to_string()),
        }
    }
}

/// A missing file means that its checkpoint was deleted, which may happen at any moment.
impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::NotFound(name) => Self::NotFound { what: "file", id: name },
            error @ StorageError::NoSpace { .. } => Self::NoSpace(error.to_string()),
            error @ (StorageError::Settings(_) | StorageError::Failed { .. }) => Self::Internal(error.to_string()),
        }
    }
}

/// An operation error found while reading a request is the client's.
impl From<OpError> for ApiError {
    fn from(error: OpError) -> Self {
        Self::Invalid(error.message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_error_has_a_length_and_a_detail() {
        let errors = [
            ApiError::Unauthorized("no key"),
            ApiError::Forbidden("wrong signature"),
            ApiError::NotFound { what: "session", id: "x".into() },
            ApiError::Unsupported("/api/v1/audit".into()),
            ApiError::Gone("over".into()),
            ApiError::TooLarge { limit: 9 },
            ApiError::Mismatch("other content".into()),
            ApiError::invalid("prompt: empty"),
            ApiError::Internal("secret".into()),
        ];
        for error in errors {
            let shown = error.to_string();
            let response = error.into_response();
            assert!(response.headers().contains_key(header::CONTENT_LENGTH), "{shown}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
            assert_ne!(response.status(), StatusCode::CONFLICT);
        }
    }

    #[tokio::test]
    async fn a_used_up_quota_is_named_with_its_limit_and_use() {
        let quota = scheduler::Quota::Runs;
        let retry_after = std::time::Duration::from_secs(10);
        let error = scheduler::Error::Quota(Refusal { quota, limit: 2, used: 2, asked: 1, retry_after });
        let response = ApiError::from(error).into_response();
        assert_eq!(
            (response.status(), &response.headers()[header::RETRY_AFTER]),
            (StatusCode::TOO_MANY_REQUESTS, &HeaderValue::from(10))
        );
        let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["quota"], &body["limit"], &body["used"]), (&"max_runs".into(), &2.into(), &2.into()));
        assert!(body["detail"].as_str().unwrap().contains("2 of 2 training runs"));
    }

    #[test]
    fn a_busy_answer_says_when_to_come_back() {
        let response = ApiError::Busy { message: "full".into(), retry_after_seconds: 2 }.into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    }
}
