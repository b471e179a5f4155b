//! Protects a server without keys from web pages of other hosts.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Authenticator, browser};
use crate::error::ApiError;

/// The reason why a server without keys refuses a request to another host.
const OTHER_HOST: &str = "this server has no keys, so it serves only its own machine, and the request's Host (or Origin) is \
    not localhost, 127.0.0.1 or [::1]: use such an address, configure keys, or start it with --insecure-no-auth";

/// Refuses a request to a server without keys whose `Host` or `Origin` is not this machine, whatever its path: the name of
/// another host could lead here, and a page of that host could then use the server.
pub async fn require_own_host(State(auth): State<Arc<Authenticator>>, request: Request, next: Next) -> Response {
    if auth.keys.trusts_forwarded() || browser::names_this_machine(request.headers()) {
        return next.run(request).await;
    }
    match auth.needs_keys().await {
        Ok(true) => next.run(request).await,
        Ok(false) => ApiError::Forbidden(OTHER_HOST).into_response(),
        Err(error) => ApiError::from(error).into_response(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tower::ServiceExt;
    use trainyard_protocol::TenantId;

    use super::*;
    use crate::api::tests::testing::{KEY, Server};
    use crate::auth::Keys;
    use crate::state::Limits;

    const PATHS: [&str; 5] = ["/api/v1/auth/whoami", "/api/v1/healthz", "/metrics", "/hf/m/resolve/main/x", "/docs"];

    /// The statuses of all paths for a host and an origin.
    async fn statuses(keys: Keys, host: &str, origin: Option<&str>) -> Vec<bool> {
        let server = Server::with(Limits::default(), keys).await;
        let router = Router::new()
            .route("/metrics", get(|| async { "metrics" }))
            .route("/hf/{*path}", get(|| async { "file" }))
            .fallback_service(server.router())
            .layer(from_fn_with_state(Arc::clone(&server.state.auth), require_own_host));
        let mut refused = Vec::new();
        for path in PATHS {
            let mut request = Request::get(path).header("host", host).header("x-api-key", KEY);
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            refused.push(answer.status() == 403);
        }
        refused
    }

    #[tokio::test]
    async fn without_keys_no_path_is_served_to_another_host() {
        for (host, origin, refused) in [
            ("localhost:8000", None, false),
            ("127.0.0.1:8000", Some("http://127.0.0.1:8000"), false),
            ("evil.example:8000", None, true),
            ("evil.example:8000", Some("http://evil.example:8000"), true),
            ("localhost:8000", Some("http://evil.example:8000"), true),
        ] {
            assert_eq!(statuses(Keys::local(), host, origin).await, [refused; PATHS.len()], "{host} {origin:?}");
        }
        assert_eq!(statuses(Keys::local().trust_forwarded(), "train.example", None).await, [false; PATHS.len()]);
        let keyed = Keys::new(vec![(Keys::digest(KEY), TenantId::new("acme"))]);
        assert_eq!(statuses(keyed, "train.example", None).await, [false; PATHS.len()]);
    }
}
