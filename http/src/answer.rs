//! Answers of known length.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

/// Returns the body of a refusal.
pub fn refusal_text(detail: &str) -> String {
    serde_json::json!({ "detail": detail }).to_string()
}

/// Returns a JSON response of known length: clients treat a 400 without `content-length` as a proxy's.
pub fn json_response(status: StatusCode, value: &serde_json::Value) -> Response {
    full_response(status, "application/json", value.to_string().into())
}

/// Returns a response of known length.
pub fn full_response(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    response
}
