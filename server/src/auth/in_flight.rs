//! Access of callers during long requests: polls, replies of many tokens, streams.
//!
//! The key or token is checked again while the request lasts, as at its beginning. A request ends when it would now be
//! refused: its key was revoked or has expired, its token has expired or the issuer has withdrawn the key, the user or
//! the organisation is disabled.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use tokio::time::timeout;
use trainyard_protocol::TenantId;

use super::authenticator::{Authenticator, DISABLED};
use super::stored::MAX_AGE;
use crate::error::{ApiError, FailureEvent};

/// The caller of a request that is being answered.
pub(super) struct InFlightCaller {
    pub(super) auth: Arc<Authenticator>,
    /// The key or token that the caller sent.
    pub(super) given: String,
    pub(super) tenant: TenantId,
}

impl InFlightCaller {
    /// Returns the reason why the caller may no longer call. A store or an issuer that does not answer takes no access
    /// away.
    async fn lost_access(&self) -> Option<ApiError> {
        let refused = |error: &ApiError| matches!(error, ApiError::Unauthorized(_) | ApiError::Token(_));
        self.auth.caller(&self.given).await.err().filter(refused)
    }

    /// Returns whether the caller is known to be disabled, without asking the store.
    fn is_disabled(&self) -> bool {
        self.auth.stored.is_disabled(&self.tenant)
    }
}

/// Waits for an answer, and for the end of its body, as long as its caller has access.
pub(super) async fn watched(caller: InFlightCaller, answer: impl Future<Output = Response>) -> Response {
    let mut answer = pin!(answer);
    let mut asked = false;
    let response = loop {
        if let Ok(response) = timeout(MAX_AGE, answer.as_mut()).await {
            break response;
        }
        // Dropping the answer's future stops the work, as when a client hangs up.
        if let Some(error) = caller.lost_access().await {
            return error.into_response();
        }
        asked = true;
    };
    if response.body().size_hint().exact().is_none() {
        return guarded(caller, response);
    }
    let lost = match asked {
        true => caller.lost_access().await,
        false => caller.is_disabled().then_some(ApiError::Unauthorized(DISABLED)),
    };
    lost.map_or(response, IntoResponse::into_response)
}

/// Makes a body that ends when its caller loses access: a stream of events with an event, others with a broken
/// connection.
fn guarded(caller: InFlightCaller, response: Response) -> Response {
    let failure = response.extensions().get::<FailureEvent>().cloned();
    response.map(|body| {
        let open = Guarded { caller, failure, body: body.into_data_stream(), checked: Instant::now() };
        Body::from_stream(futures::stream::unfold(Some(open), |open| async { open?.next().await }))
    })
}

struct Guarded {
    caller: InFlightCaller,
    failure: Option<FailureEvent>,
    body: BodyDataStream,
    checked: Instant,
}

type Piece = Result<Bytes, axum::BoxError>;

impl Guarded {
    /// Returns the next piece and the rest.
    async fn next(mut self) -> Option<(Piece, Option<Self>)> {
        loop {
            let piece = timeout(MAX_AGE.saturating_sub(self.checked.elapsed()), self.body.next()).await;
            if self.checked.elapsed() >= MAX_AGE {
                if let Some(error) = self.caller.lost_access().await {
                    let last = match self.failure {
                        Some(FailureEvent(write)) => Ok(write(&error).into()),
                        None => Err(io::Error::new(io::ErrorKind::PermissionDenied, error.to_string()).into()),
                    };
                    return Some((last, None));
                }
                self.checked = Instant::now();
            }
            match piece {
                Ok(Some(Ok(piece))) => return Some((Ok(piece), Some(self))),
                Ok(Some(Err(error))) => return Some((Err(error.into()), None)),
                Ok(None) => return None,
                Err(_) => {}
            }
        }
    }
}
