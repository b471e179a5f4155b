//! Starts and ends a browser's session.

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_http::answer::json_response;
use trainyard_http::peer::Peer;
use trainyard_wire::timestamp::rfc3339;

use crate::auth::{Principal, browser};
use crate::error::ApiError;
use crate::state::AppState;

/// Body of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    key: String,
}

/// `GET /console/session`: the holder of the session. If the server needs no keys, a session starts.
pub(super) async fn session(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    current(&state, &headers).await.map(|(session, cookie)| respond(session, cookie))
}

/// Returns the holder of a browser's session. If the server needs no keys and a session starts now, also returns its
/// cookie.
///
/// # Errors
///
/// [`ApiError::Unauthorized`] if the browser has no session and the server needs keys.
pub(super) async fn current(state: &AppState, headers: &HeaderMap) -> Result<(Value, Option<HeaderValue>), ApiError> {
    if let Some((token, holder)) = state.auth.current_session(headers).await? {
        return Ok((described(state, &token, &holder).await?, None));
    }
    if state.auth.needs_keys().await? {
        return Err(ApiError::Unauthorized("log in with an API key"));
    }
    let (token, holder) = state.auth.begin_session(headers, None, None).await?;
    Ok((described(state, &token, &holder).await?, begun(state, &token)))
}

/// `POST /console/login`: a session for the holder of a key. The body is JSON, which a form of another page can't send.
pub(super) async fn login(
    State(state): State<AppState>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Result<Json<Login>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(login) = body.map_err(|error| ApiError::invalid(error.body_text()))?;
    let peer = peer.map(|Extension(peer)| peer);
    let (token, holder) = state.auth.begin_session(&headers, Some(login.key.trim()), peer).await?;
    tracing::info!(tenant = %holder.tenant, name = holder.name, "console: session started");
    Ok(respond(described(&state, &token, &holder).await?, begun(&state, &token)))
}

/// `POST /console/logout`: ends the session and removes the cookie.
pub(super) async fn logout(
    State(state): State<AppState>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let done = StatusCode::NO_CONTENT.into_response();
    if !browser::has_session(&method, &headers)? {
        return Ok(done);
    }
    state.auth.end_session(&headers).await?;
    Ok(with(done, cookie(&state, "", 0)))
}

async fn described(state: &AppState, token: &str, holder: &Principal) -> Result<Value, ApiError> {
    Ok(json!({
        "organisation": holder.tenant.as_str(),
        "name": holder.name,
        "role": holder.role.as_str(),
        "operator": holder.operator,
        "scopes": holder.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(),
        "expires_at": holder.expires_at.map(|at| rfc3339(at.as_millis())),
        // A server may get its first key while it runs.
        "keyed": state.auth.needs_keys().await?,
        "csrf": browser::csrf_of(token),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

fn respond(session: Value, cookie: Option<HeaderValue>) -> Response {
    let mut response = json_response(StatusCode::OK, &session);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    with(response, cookie)
}

/// Returns the cookie of a new session.
fn begun(state: &AppState, token: &str) -> Option<HeaderValue> {
    cookie(state, token, browser::LIFETIME.as_secs())
}

fn cookie(state: &AppState, token: &str, seconds: u64) -> Option<HeaderValue> {
    let https = state.https || state.public_url.as_deref().is_some_and(|url| url.starts_with("https:"));
    HeaderValue::try_from(browser::cookie(token, seconds, https)).ok()
}

fn with(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;
    use trainyard_protocol::TenantId;
    use trainyard_scheduler::{Role, Timestamp};

    use crate::api::tests::testing::*;

    use super::*;
    use crate::auth::{Keys, SeedKey};
    use crate::state::Limits;

    const LOCAL: (&str, &str) = ("host", "localhost:8000");

    async fn send(server: &Server, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        server.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    fn cookie_of(got: &Got) -> String {
        let text = got.headers["set-cookie"].to_str().unwrap();
        assert!(text.contains("HttpOnly; SameSite=Strict"), "{text}");
        text.split(';').next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn without_keys_a_session_begins_by_itself_on_this_machine_alone() {
        let server = Server::start().await;
        let got = send(&server, Method::GET, "/console/session", &[LOCAL], "").await;
        assert_eq!((&got.json()["organisation"], &got.json()["keyed"]), (&Value::from("local"), &Value::from(false)));
        let cookie = cookie_of(&got);
        let again = send(&server, Method::GET, "/console/session", &[LOCAL, ("cookie", &cookie)], "").await;
        assert!(!again.headers.contains_key("set-cookie"));
        assert_eq!(again.json()["csrf"], got.json()["csrf"]);
        let listed = send(&server, Method::GET, "/api/v1/training_runs", &[("cookie", &cookie)], "").await;
        assert_eq!(listed.status, 200);
        // A name that its owner made lead here, and a proxy.
        let rebound = [("host", "evil.example:8000")];
        send(&server, Method::GET, "/console/session", &rebound, "").await.refused(403);
        send(&server, Method::GET, "/console/session", &[LOCAL, ("x-real-ip", "10.0.0.1")], "").await.refused(403);
    }

    #[tokio::test]
    async fn a_page_that_creates_the_first_key_logs_in_with_it() {
        let server = Server::start().await;
        let directory = server.state.scheduler.directory();
        directory.seed_organisations(vec![(TenantId::new("local"), true)]).await.unwrap();
        let got = send(&server, Method::GET, "/console/session", &[LOCAL], "").await;
        let (cookie, csrf) = (cookie_of(&got), got.json()["csrf"].as_str().unwrap().to_owned());
        let page = [LOCAL, ("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
        let body = r#"{"name": "first", "role": "admin"}"#;
        let key = send(&server, Method::POST, "/api/v1/admin/keys", &page, body).await.text("key");
        // The session of before has no key.
        send(&server, Method::GET, "/api/v1/admin/keys", &page, "").await.refused(401);
        let login = json!({ "key": key }).to_string();
        let got = send(&server, Method::POST, "/console/login", &page, &login).await;
        assert_eq!((&got.json()["keyed"], &got.json()["role"]), (&json!(true), &json!("admin")));
        assert_eq!(got.json()["operator"], true);
        let listed =
            send(&server, Method::GET, "/api/v1/admin/organisations", &[("cookie", &cookie_of(&got))], "").await;
        assert_eq!(listed.status, 200);
    }

    #[tokio::test]
    async fn a_key_begins_a_session_that_changes_things_with_its_second_token_alone() {
        let keys = Keys::new(vec![(Keys::digest("tml-acme-0123456789-0123456789"), TenantId::new("acme"))]);
        let server = Server::with(Limits::default(), keys).await;
        send(&server, Method::GET, "/console/session", &[LOCAL], "").await.refused(401);
        let wrong = r#"{"key": "tml-other-0123456789-0123456789"}"#;
        send(&server, Method::POST, "/console/login", &[LOCAL], wrong).await.refused(401);
        send(&server, Method::POST, "/console/login", &[LOCAL], "{}").await.refused(400);
        let right = r#"{"key": " tml-acme-0123456789-0123456789 "}"#;
        let got = send(&server, Method::POST, "/console/login", &[], right).await;
        let (cookie, csrf) = (cookie_of(&got), got.json()["csrf"].as_str().unwrap().to_owned());
        assert_eq!(got.json()["organisation"], "acme");
        let body = r#"{"tags": [], "user_metadata": {}, "sdk_version": "1", "type": "create_session"}"#;
        let create = "/api/v1/create_session";
        send(&server, Method::POST, create, &[("cookie", &cookie)], body).await.refused(403);
        let forged = [("cookie", cookie.as_str()), ("x-csrf-token", "AAAA")];
        send(&server, Method::POST, create, &forged, body).await.refused(403);
        let good = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
        assert_eq!(send(&server, Method::POST, create, &good, body).await.status, 200);
        // A key in a header does not make a browser's session.
        let keyed = [("cookie", cookie.as_str()), ("x-api-key", "tml-acme-0123456789-0123456789")];
        assert_eq!(send(&server, Method::POST, create, &keyed, body).await.status, 200);
        // Another session of the same key survives a logout, but a copy of the cookie does not.
        let other = send(&server, Method::POST, "/console/login", &[], right).await;
        let (other_cookie, other_csrf) = (cookie_of(&other), other.json()["csrf"].as_str().unwrap().to_owned());
        let leaving = [("cookie", other_cookie.as_str()), ("x-csrf-token", other_csrf.as_str())];
        assert_eq!(send(&server, Method::GET, "/console/session", &leaving, "").await.status, 200);
        assert_eq!(send(&server, Method::POST, "/console/logout", &leaving, "").await.status, 204);
        let refused = send(&server, Method::GET, "/api/v1/training_runs", &leaving, "").await.refused(401);
        assert!(refused.contains("ended by a logout"), "{refused}");
        send(&server, Method::GET, "/console/session", &leaving, "").await.refused(401);
        // As a bearer token it is no better, and it begins no session.
        let bearer = format!("Bearer {}", other_cookie.split_once('=').unwrap().1);
        send(&server, Method::GET, "/api/v1/training_runs", &[("authorization", &bearer)], "").await.refused(401);
        assert_eq!(send(&server, Method::POST, "/console/logout", &leaving, "").await.status, 204);
        assert_eq!(send(&server, Method::GET, "/api/v1/training_runs", &good, "").await.status, 200);
        server.clock.advance(12 * 3_600 + 1);
        send(&server, Method::GET, "/api/v1/training_runs", &[("cookie", &cookie)], "").await.refused(401);
        send(&server, Method::POST, "/console/logout", &[("cookie", &cookie)], "").await.refused(403);
        let ended = send(&server, Method::POST, "/console/logout", &good, "").await;
        assert!(ended.headers["set-cookie"].to_str().unwrap().starts_with("trainyard_session=;"));
    }
    async fn log_in(server: &Server, peer: &str, key: &str) -> Got {
        let mut request = Request::post("/console/login").header("content-type", "application/json");
        request = request.header("x-forwarded-for", "203.0.113.5");
        let mut request = request.body(Body::from(json!({ "key": key }).to_string())).unwrap();
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        server.send(request).await
    }

    async fn call(server: &Server, peer: &str, key: &str) -> Got {
        let mut request = Request::get("/api/v1/training_runs").header("x-api-key", key).body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        server.send(request).await
    }

    #[tokio::test]
    async fn an_address_that_guesses_keys_waits_and_others_do_not() {
        let key = |digest, role| SeedKey { digest, tenant: TenantId::new("ops"), name: "k".to_owned(), role };
        let entries = vec![key(Keys::digest("tml-known"), Role::Admin), key(Keys::digest("tml-new"), Role::Member)];
        let keys = Keys::seed(entries, Vec::new(), vec![TenantId::new("ops")]);
        let server = Server::with(Limits::default(), keys).await;
        let (guesser, other) = ("192.0.2.1", "192.0.2.2");
        assert_eq!(call(&server, guesser, "tml-known").await.status, 200);
        for guess in 0..20 {
            let guess = format!("tml-guess-{guess}");
            match guess.len() % 2 {
                0 => log_in(&server, guesser, &guess).await.refused(401),
                _ => call(&server, guesser, &guess).await.refused(401),
            };
        }
        for key in ["tml-new", "tml-guess-0"] {
            let waits = log_in(&server, guesser, key).await;
            assert!(waits.refused(429).contains("too many wrong API keys"));
            assert_eq!(waits.headers[header::RETRY_AFTER], "1");
            call(&server, guesser, key).await.refused(429);
        }
        // Whoever works from there goes on, and nobody else is concerned.
        assert_eq!(call(&server, guesser, "tml-known").await.status, 200);
        assert_eq!(call(&server, other, "tml-new").await.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        assert_eq!(log_in(&server, guesser, "tml-new").await.status, 200);
        assert_eq!(call(&server, guesser, "tml-new").await.status, 200);
        let (ops, end) = (TenantId::new("ops"), Timestamp(i64::MAX));
        let entries = server.state.scheduler.audit_log(&ops, None, Timestamp(0), end).await.unwrap();
        let of = |event: &str| entries.iter().filter(|entry| entry.event == event).count();
        assert_eq!((of("login_fail"), of("wrong_keys")), (1, 1));
        let login = entries.iter().find(|entry| entry.event == "login_fail").unwrap();
        assert_eq!(login.address.as_deref(), Some("192.0.2.1 for 203.0.113.5"));
        assert!(!format!("{entries:?}").contains("tml-"), "{entries:?}");
    }
}
