//! Memory of responses being sent: it is reserved before they are written, and clients that ask for the same result
//! share it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use trainyard_http::answer::full_response;
use trainyard_protocol::{RequestId, TenantId};

use super::receive::{BodyBudget, BodyLimits, Memory};
use crate::error::ApiError;

/// Answers up to this size need no memory budget: the connection's buffer is as large.
const SMALL: usize = 64 << 10;
/// Bytes that the connection gets at once.
const PIECE: usize = 64 << 10;
/// The longest wait of an answer for memory: clients give up 15 s after the longest poll.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The time after which a client should ask again for an answer that did not get memory.
const RETRY_AFTER_SECONDS: u32 = 2;

/// Answers that are written or read by clients. Cheap to clone; all clones share them.
#[derive(Clone)]
pub(crate) struct Answers {
    budget: BodyBudget,
    /// Results that at least one client is reading, by form.
    shared: Arc<Mutex<BTreeMap<Shared, Weak<Answer>>>>,
}

/// A result in one form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shared {
    pub(crate) tenant: TenantId,
    pub(crate) request: RequestId,
    pub(crate) content_type: &'static str,
}

/// A whole answer and the memory that is reserved for it.
pub(crate) struct Answer {
    bytes: Bytes,
    _memory: Memory,
}

impl Answers {
    /// Makes a budget of `memory` bytes for all answers; with `several` tenants, each may use half of it.
    pub(crate) fn new(memory: usize, wait: Duration, several: bool) -> Self {
        let limits = BodyLimits { memory, wait: wait.min(MAX_WAIT), ..BodyLimits::default() };
        Self { budget: BodyBudget::new(limits, several), shared: Arc::default() }
    }

    /// Reserves memory for an answer, if enough is free now.
    pub(crate) fn try_reserve(&self, tenant: &TenantId, bytes: usize) -> Result<Memory, ApiError> {
        let mut memory = self.budget.memory(Some(tenant));
        if bytes > SMALL {
            self.budget.try_reserve(&mut memory, bytes).map_err(|_| full())?;
        }
        Ok(memory)
    }

    /// Reserves memory like [`Self::try_reserve`], but waits for it for a limited time. The caller should hold no part
    /// of the answer meanwhile.
    pub(crate) async fn reserve(&self, tenant: &TenantId, bytes: usize) -> Result<Memory, ApiError> {
        let mut memory = self.budget.memory(Some(tenant));
        if bytes > SMALL {
            self.budget.reserve(&mut memory, bytes).await.map_err(|_| full())?;
        }
        Ok(memory)
    }

    /// Finds a result that another client is reading.
    pub(crate) fn find(&self, shared: &Shared) -> Option<Arc<Answer>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).get(shared).and_then(Weak::upgrade)
    }

    /// Offers a result to further clients while at least one reads it.
    pub(crate) fn share(&self, shared: Shared, bytes: Bytes, mut memory: Memory) -> Arc<Answer> {
        memory.shrink(bytes.len());
        let answer = Arc::new(Answer { bytes, _memory: memory });
        if answer.bytes.len() > SMALL {
            let mut all = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, answer| answer.strong_count() > 0);
            all.insert(shared, Arc::downgrade(&answer));
        }
        answer
    }
}

fn full() -> ApiError {
    ApiError::Busy {
        message: "responses that other clients are reading use all of the memory for responses; try again".to_owned(),
        retry_after_seconds: RETRY_AFTER_SECONDS,
    }
}

impl Answer {
    /// Makes a response, whose memory stays reserved until the client has read it or disconnects.
    pub(crate) fn response(self: Arc<Self>, content_type: &'static str) -> Response {
        let mut response = full_response(StatusCode::OK, content_type, Bytes::new());
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(self.bytes.len()));
        *response.body_mut() = Body::new(Held { rest: self.bytes.clone(), _answer: self });
        response.extensions_mut().insert(Counted);
        response
    }
}

/// Marks a response whose memory is reserved.
#[derive(Clone, Copy)]
struct Counted;

/// The unread part of an answer.
struct Held {
    rest: Bytes,
    _answer: Arc<Answer>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE);
        // The connection takes no more than it can send, so that most of the answer is counted here.
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Reserves memory for every large answer of known length until its client has read it.
pub(crate) async fn count(State(answers): State<Answers>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let length = response.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| *length > SMALL) else { return response };
    let tenant = response.extensions().get::<TenantId>().cloned();
    let (None, Some(tenant)) = (response.extensions().get::<Counted>(), tenant) else { return response };
    let memory = match answers.try_reserve(&tenant, length) {
        Ok(memory) => memory,
        Err(error) => {
            let mut refusal = error.into_response();
            refusal.extensions_mut().insert(tenant);
            return refusal;
        }
    };
    let (parts, body) = response.into_parts();
    // The answer is complete already.
    let Ok(bytes) = axum::body::to_bytes(body, length).await else {
        return ApiError::Internal("an answer is longer than its content-length".to_owned()).into_response();
    };
    let answer = Arc::new(Answer { bytes: bytes.clone(), _memory: memory });
    Response::from_parts(parts, Body::new(Held { rest: bytes, _answer: answer }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const MIB: usize = 1 << 20;

    fn shared(request: &str) -> Shared {
        Shared { tenant: TenantId::new("a"), request: RequestId::new(request), content_type: "application/json" }
    }

    #[tokio::test]
    async fn memory_is_held_until_the_client_has_read_or_is_gone() {
        let answers = Answers::new(64 * MIB, MAX_WAIT, false);
        let tenant = TenantId::new("a");
        let mut reading = Vec::new();
        while let Ok(memory) = answers.try_reserve(&tenant, 8 * MIB) {
            let answer = answers.share(shared("r"), vec![7; 8 * MIB].into(), memory);
            reading.push(answer.response("application/json"));
        }
        assert_eq!(reading.len(), 6, "three quarters are for large ones");
        let refused = answers.try_reserve(&tenant, 8 * MIB).err().unwrap();
        assert!(matches!(refused, ApiError::Busy { retry_after_seconds: 2, .. }));
        let read = reading.pop().unwrap();
        assert_eq!(read.headers()[CONTENT_LENGTH], (8 * MIB).to_string().as_str());
        assert_eq!(axum::body::to_bytes(read.into_body(), usize::MAX).await.unwrap(), vec![7; 8 * MIB]);
        drop(answers.try_reserve(&tenant, 8 * MIB).unwrap());
        // Half read, and gone.
        let mut body = reading.pop().unwrap().into_body().into_data_stream();
        let first = futures::StreamExt::next(&mut body).await.unwrap().unwrap();
        assert_eq!(first.len(), PIECE);
        let both = || (answers.try_reserve(&tenant, 8 * MIB), answers.try_reserve(&tenant, 8 * MIB));
        assert!(both().1.is_err());
        drop(body);
        let both = both();
        assert!(both.0.is_ok() && both.1.is_ok());
    }

    #[tokio::test]
    async fn a_tenant_has_half_of_the_memory() {
        let answers = Answers::new(64 * MIB, MAX_WAIT, true);
        let (greedy, other) = (TenantId::new("greedy"), TenantId::new("other"));
        let mut held = Vec::new();
        while let Ok(memory) = answers.try_reserve(&greedy, 8 * MIB) {
            held.push(memory);
        }
        assert_eq!(held.len(), 3);
        assert!(answers.try_reserve(&other, 8 * MIB).is_ok());
        assert!(answers.reserve(&greedy, SMALL).await.is_ok(), "small answers need none");
    }

    #[tokio::test]
    async fn clients_of_one_result_share_it() {
        let answers = Answers::new(64 * MIB, MAX_WAIT, false);
        let tenant = TenantId::new("a");
        assert!(answers.find(&shared("r")).is_none());
        // More is reserved for writing it than it takes.
        let memory = answers.reserve(&tenant, 40 * MIB).await.unwrap();
        let answer = answers.share(shared("r"), vec![7; 8 * MIB].into(), memory);
        let again = answers.find(&shared("r")).unwrap();
        assert!(Arc::ptr_eq(&answer, &again));
        assert!(answers.find(&shared("s")).is_none());
        assert!(answers.try_reserve(&tenant, 40 * MIB).is_ok());
        drop((answer, again));
        assert!(answers.find(&shared("r")).is_none());
    }
}
