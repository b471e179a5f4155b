//! Answers in server-sent events. When the client disconnects, the source is dropped, and with it the request it waits
//! for.

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
use tokio::time::timeout;

use crate::error::{ApiError, FailureEvent};

/// Time without an event after which a ping is sent, so that proxies keep the connection open.
const SILENCE: Duration = Duration::from_secs(15);
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An answer, whole or in events.
pub(crate) enum Answered<T> {
    /// A value that is written as JSON.
    Whole(Box<T>),
    /// A response of events.
    Stream(Response),
}

/// A source of events.
pub(crate) trait EventSource: Send + 'static {
    /// Text of a ping.
    const PING: &'static str;

    /// Waits for further events, as text; `None` after the last. May be dropped and called again.
    fn next(&mut self) -> impl Future<Output = Result<Option<String>, ApiError>> + Send;

    /// The last event of a stream that fails.
    fn failure(error: &ApiError) -> String;
}

/// An event without a name.
pub(crate) fn data(value: &impl Serialize) -> Result<String, ApiError> {
    let json = serde_json::to_string(value)
        .map_err(|error| ApiError::Internal(format!("failed to write an event: {error}")))?;
    Ok(format!("data: {json}\n\n"))
}

/// An event with a name.
pub(crate) fn named(name: &str, value: &impl Serialize) -> Result<String, ApiError> {
    Ok(format!("event: {name}\n{}", data(value)?))
}

/// The events of a source, as they come.
pub(crate) fn respond<S: EventSource>(source: S) -> Response {
    let stream = futures::stream::unfold(Some(source), |source| async {
        let mut source = source?;
        match timeout(SILENCE, source.next()).await {
            Err(_) => Some((S::PING.to_owned(), Some(source))),
            Ok(Ok(Some(events))) => Some((events, Some(source))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((S::failure(&error), None)),
        }
    });
    let body = futures::StreamExt::map(stream, |events| Ok::<_, std::convert::Infallible>(Bytes::from(events)));
    let mut response = Response::new(Body::from_stream(body));
    response.extensions_mut().insert(FailureEvent(S::failure));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}
