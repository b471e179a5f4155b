//! A file as an answer: all of it or the requested part.

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::File;

/// The file, or its part in `range`; for a `HEAD`, only its headers.
pub(super) async fn content(name: &str, file: &File, method: &Method, range: Option<&HeaderValue>) -> Response {
    let size = file.size();
    let kind = match name.rsplit_once('.') {
        Some((_, "json")) => "application/json",
        Some((_, "txt" | "jinja")) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let digest = match file.digest().await {
        Ok(digest) => digest,
        Err(error) => return unreadable(name, &error),
    };
    let shared = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::ETAG, format!("\"{digest}\"")),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ];
    let (status, part) = match range.and_then(|range| part(range, size)) {
        None => (StatusCode::OK, 0..size),
        Some(part) if part.is_empty() => {
            let extent = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, extent).into_response();
        }
        Some(part) => (StatusCode::PARTIAL_CONTENT, part),
    };
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        match file.read(part.clone()).await {
            Ok(body) => body,
            Err(error) => return unreadable(name, &error),
        }
    };
    let length = [(header::CONTENT_LENGTH, (part.end - part.start).to_string())];
    let mut response = (status, shared, length, body).into_response();
    if status == StatusCode::PARTIAL_CONTENT
        && let Ok(extent) = HeaderValue::try_from(format!("bytes {}-{}/{size}", part.start, part.end - 1))
    {
        response.headers_mut().insert(header::CONTENT_RANGE, extent);
    }
    response
}

fn unreadable(name: &str, error: &std::io::Error) -> Response {
    tracing::error!(file = name, %error, "failed to read a file of a model");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// The bytes that a `Range` header asks for: empty if there are none, `None` to send everything. A server may send
/// everything if it does not understand the header, such as several ranges.
fn part(range: &HeaderValue, size: u64) -> Option<Range<u64>> {
    let (first, last) = range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let count: u64 = last.parse().ok()?;
        return Some(size - count.min(size)..size);
    }
    let first: u64 = first.parse().ok()?;
    let end = if last.is_empty() { size } else { last.parse::<u64>().ok()?.checked_add(1)?.min(size) };
    Some(first.min(end)..end)
}
