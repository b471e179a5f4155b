//! Ids and spans of calls. Every HTTP request has an id and is a span of a trace: its client sends both, or the server
//! makes them. The answer contains both, and requests that the call submits carry them.

mod trace_state;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use trainyard_scheduler::{Origin, TraceContext};
use trainyard_wire::auth::KEY_PREFIX;

use crate::random::Random;

/// The header of a call's id, in requests and answers.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The longest accepted id of a client, in characters; longer ones are replaced.
const MAX_ID: usize = 128;

/// The identity of an HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The id and the span of the request.
    pub(crate) origin: Origin,
    /// The span of the client; 0 if the request begins a trace.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "only traces read it"))]
    pub(crate) parent: u64,
    /// The `tracestate` of other systems.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "only traces read it"))]
    pub(crate) trace_state: Option<Arc<str>>,
}

/// The settings with which calls are named.
#[derive(Clone)]
pub struct Calls {
    /// The source of random ids.
    pub random: Random,
    /// Whether traces that begin here are recorded.
    pub records: bool,
}

impl Calls {
    fn call(&self, headers: &HeaderMap) -> Call {
        let id = given_id(headers).map_or_else(|| format!("{:032x}", self.id128()).into(), Arc::from);
        let own = self.id64();
        let parent = single(headers, &TRACE_PARENT).and_then(TraceContext::parse);
        let trace = match parent {
            Some(parent) => parent.child(own),
            None => TraceContext { trace_id: self.id128(), span_id: own, sampled: self.records },
        };
        Call {
            origin: Origin { call: id, trace },
            parent: parent.map_or(0, |parent| parent.span_id),
            // The state of a trace that is not continued would mean nothing.
            trace_state: parent.and_then(|_| trace_state::parse(headers.get_all(TRACE_STATE).iter())),
        }
    }

    /// Returns a random id other than zero, which means none.
    fn id64(&self) -> u64 {
        (self.random)().max(1)
    }

    fn id128(&self) -> u128 {
        u128::from((self.random)()) << 64 | u128::from(self.id64())
    }
}

/// Names a request for all its handlers, and adds the names to the answer.
pub async fn identify(State(calls): State<Calls>, mut request: Request, next: Next) -> Response {
    let call = calls.call(request.headers());
    let origin = call.origin.clone();
    request.extensions_mut().insert(call);
    let mut response = origin.clone().scope(next.run(request)).await;
    let named = [(REQUEST_ID, origin.call.to_string()), (TRACE_PARENT, origin.trace.to_string())];
    for (name, value) in named {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Reads the client's id, if it is allowed in headers and in the log.
fn given_id(headers: &HeaderMap) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&byte);
    let usable = |id: &&str| !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(plain) && !id.contains(KEY_PREFIX);
    single(headers, &REQUEST_ID).filter(usable)
}

/// Reads a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

#[cfg(test)]
#[path = "calls/tests.rs"]
mod tests;
