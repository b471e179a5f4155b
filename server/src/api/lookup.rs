//! Finds the endpoint that serves a request.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::endpoints;
use crate::endpoint::Endpoint;

type ByPath = HashMap<&'static str, Vec<&'static Endpoint>>;

/// Returns the endpoint that serves a method on a route's path, if it is in a table.
pub(super) fn find(method: &Method, path: &str) -> Option<&'static Endpoint> {
    static ALL: LazyLock<ByPath> = LazyLock::new(|| {
        let mut all = ByPath::new();
        for endpoint in endpoints() {
            all.entry(endpoint.path).or_default().push(endpoint);
        }
        all
    });
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    ALL.get(path)?.iter().copied().find(|endpoint| method.as_str().eq_ignore_ascii_case(endpoint.method))
}

/// Notes the endpoint of a request for the check of its key.
pub(super) async fn note(mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let endpoint = path.and_then(|path| find(request.method(), path.as_str()));
    if let Some(endpoint) = endpoint {
        request.extensions_mut().insert(endpoint);
    }
    next.run(request).await
}
