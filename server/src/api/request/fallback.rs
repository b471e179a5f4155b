//! Handles paths and methods that the server does not serve.

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::error::ApiError;
use crate::inference::error_form::long_path;

/// Returns a 404 that names the path: clients would retry a status from 500 for minutes.
pub(crate) async fn not_supported(request: Request) -> ApiError {
    ApiError::Unsupported(asked(&request))
}

/// Returns a 405 whose body is JSON.
pub(crate) async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::MethodNotAllowed { method: request.method().to_string(), path: asked(&request) }
}

/// The path that the client called, if a longer path is routed instead.
#[derive(Clone)]
struct ShortPath(String);

fn asked(request: &Request) -> String {
    let short = request.extensions().get::<ShortPath>();
    short.map_or_else(|| request.uri().path().to_owned(), |ShortPath(path)| path.clone())
}

/// Rewrites paths before they are routed.
///
/// Percent-encoded slashes become plain ones: a checkpoint id is `weights/<name>`, and clients send it as two segments
/// or encoded as one. Paths below `/v1` abbreviate those of the compatible APIs.
pub(crate) async fn rewrite_path(mut request: Request, next: Next) -> Response {
    let path_and_query = request.uri().path_and_query().map(|value| value.as_str()).unwrap_or_default();
    let (path, query) = path_and_query.split_once('?').map_or((path_and_query, None), |(p, q)| (p, Some(q)));
    let encoded = path.starts_with("/api/v1/training_runs/") && (path.contains("%2F") || path.contains("%2f"));
    let short = long_path(path).map(|_| ShortPath(path.to_owned()));
    let new = if encoded { Some(path.replace("%2F", "/").replace("%2f", "/")) } else { long_path(path) };
    if let Some(mut new) = new {
        if let Some(query) = query {
            new.push('?');
            new.push_str(query);
        }
        if let Ok(uri) = new.parse::<Uri>() {
            *request.uri_mut() = uri;
            if let Some(short) = short {
                request.extensions_mut().insert(short);
            }
        }
    }
    next.run(request).await
}

/// Tells the client that the connection closes after a refusal that leaves its body unread. Otherwise the client would
/// send its next request on it.
pub(crate) async fn close_unread(request: Request, next: Next) -> Response {
    let has_body = !request.body().is_end_stream();
    let matched = request.extensions().get::<MatchedPath>().is_some();
    let mut response = next.run(request).await;
    let refused_unread = match response.status() {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::REQUEST_TIMEOUT => true,
        _ => !matched,
    };
    if has_body && refused_unread {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
