//! What holds for all endpoints together.

#![allow(clippy::unwrap_used, reason = "tests")]

mod images;
mod listening;
pub(crate) mod testing;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;
use trainyard_protocol::TenantId;

use self::testing::*;
use super::{endpoints, find};
use crate::auth::Keys;
use crate::endpoint::{Endpoint, Needs};
use crate::inference::error_form::short_path;
use crate::state::Limits;

#[test]
fn every_route_is_described_under_its_own_path() {
    let document = serde_json::to_value(crate::openapi::document()).unwrap();
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            described.insert((method.clone(), path.clone()));
        }
    }
    // What describes the server, and what the router above the API serves.
    let beside = ["/", "/docs/", "/docs/{file}", "/healthz", "/livez", "/readyz", "/metrics", "/hf/{path}"];
    let beside = beside.map(|path| ("get", path));
    let table = || endpoints().map(|endpoint| (endpoint.method, endpoint.path));
    let routed = table().chain(beside).map(|(method, path)| (method.to_owned(), path.to_owned()));
    let short = table().filter_map(|(method, path)| Some((method.to_owned(), short_path(path)?)));
    let routed: BTreeSet<_> = routed.chain(short).collect();
    assert_eq!(described, routed);
}

#[tokio::test]
async fn every_keyed_endpoint_refuses_a_missing_or_malformed_key() {
    let server = Server::start().await;
    for Endpoint { method, path, .. } in endpoints() {
        // Open to all, or by the signature of their URL.
        let open = ["/healthz", "/downloads/", "/traces/", "/uploads/", "/jwks.json", "/openapi.json"];
        if open.iter().any(|open| path.contains(open)) {
            continue;
        }
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
        let plain = Request::builder().method(method.clone()).uri(*path).body(Body::empty()).unwrap();
        assert!(server.send(plain).await.refused(401).contains("X-API-Key"));
        server.call(method, path, &[("x-api-key", "sk-1")], Body::empty()).await.refused(401);
    }
}

#[test]
fn every_operation_is_in_one_table_and_administration_needs_its_scope() {
    let mut names = BTreeSet::new();
    for endpoint in endpoints() {
        assert!(names.insert(endpoint.name), "{} is in two tables", endpoint.name);
        let method = Method::from_bytes(endpoint.method.to_ascii_uppercase().as_bytes()).unwrap();
        assert_eq!(find(&method, endpoint.path).unwrap().name, endpoint.name);
        let administers = ["admin", "audit", "billing"].iter().any(|name| endpoint.path.contains(&format!("/{name}")));
        assert_eq!(endpoint.needs == Needs::Admin, administers, "{}", endpoint.name);
    }
    assert_eq!(find(&Method::HEAD, "/api/v1/sessions").unwrap().name, "sessions");
    assert!(find(&Method::DELETE, "/api/v1/sessions").is_none() && find(&Method::GET, "/api/v1/none").is_none());
}

#[test]
fn scopes_follow_from_the_tables() {
    let checkpoint = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}";
    for (method, path, needs) in [
        (Method::GET, "/api/v1/training_runs", Needs::Nothing),
        (Method::POST, "/api/v1/retrieve_future", Needs::Nothing),
        (Method::DELETE, "/api/v1/auth/apikey/me", Needs::Nothing),
        (Method::POST, "/api/v1/optim_step", Needs::Train),
        (Method::POST, "/api/v1/asample", Needs::Sample),
        (Method::POST, "/oai/api/v1/chat/completions", Needs::Sample),
        (Method::POST, "/oai/api/v1/responses", Needs::Sample),
        (Method::DELETE, checkpoint, Needs::Checkpoints),
        (Method::POST, "/api/v1/external_weights_upload_start", Needs::Checkpoints),
        (Method::POST, "/api/v1/checkpoints/search", Needs::Nothing),
        (Method::GET, "/api/v1/admin/keys", Needs::Admin),
        (Method::POST, "/api/v1/admin/keys", Needs::Admin),
        (Method::GET, "/api/v1/audit", Needs::Admin),
        (Method::POST, "/api/v1/create_session", Needs::AnyChange),
    ] {
        assert_eq!(find(&method, path).unwrap().needs, needs, "{method} {path}");
    }
}

#[tokio::test]
async fn unknown_keys_are_refused_when_keys_are_configured() {
    let keys = Keys::new(vec![(Keys::digest("tml-known"), TenantId::new("alpha"))]);
    let server = Server::with(Limits::default(), keys).await;
    server.post_as("tml-unknown", "create_session", json!({})).await.refused(401);
    server.post_as("tml-known", "create_session", json!({})).await.json();
}

#[tokio::test]
async fn no_tenant_reaches_anothers_objects() {
    let keys = [(KEY, "alpha"), ("tml-b", "beta")].map(|(key, tenant)| (Keys::digest(key), TenantId::new(tenant)));
    let server = Server::with(Limits::default(), Keys::new(keys.to_vec())).await;
    let run = server.run().await;
    let sampler = server.sampler().await;
    let session = run.split(':').next().unwrap();
    let future = server.post("asample", sample(&sampler, 0)).await.text("request_id");
    let loss =
        server.post("create_custom_loss", super::training::create_custom_loss::tests::body(session, 0, "sum")).await;
    let loss = loss.text("request_id");
    let agents = server.post("agent_sessions", json!({"base_model": MODEL})).await.text("agent_session_id");
    for (path, body) in [
        ("session_heartbeat", json!({"session_id": session})),
        ("get_info", json!({"model_id": run})),
        ("optim_step", adam(&run, 1, 0.1)),
        ("asample", sample(&sampler, 0)),
        ("retrieve_future", json!({"request_id": future})),
        ("cancel_future", json!({"request_id": future})),
        ("create_model", json!({"session_id": session, "model_seq_id": 1, "base_model": MODEL})),
        ("retrieve_future", json!({"request_id": loss})),
        ("create_sampling_session", json!({"session_id": session, "sampling_session_seq_id": 1, "base_model": MODEL})),
        ("join_sampling_session", json!({"sampling_session_id": sampler})),
        ("copy_weights", json!({"source_path": format!("tinker://{run}/weights/a")})),
        (&format!("agent_sessions/{agents}/rewards"), json!({"reward": 1})),
    ] {
        server.post_as("tml-b", path, body).await.refused(404);
    }
    for path in [
        format!("sessions/{session}"),
        format!("sessions/{session}/trace_export"),
        format!("training_runs/{run}"),
        format!("training_runs/{run}?access_scope=accessible"),
        format!("training_runs/{run}/checkpoints"),
        format!("samplers/{sampler}"),
        format!("agent_sessions/{agents}"),
        format!("agent_sessions/{agents}/trajectories"),
    ] {
        let headers = [("x-api-key", "tml-b")];
        server.call(Method::GET, &format!("/api/v1/{path}"), &headers, Body::empty()).await.refused(404);
    }
}

#[tokio::test]
async fn what_is_not_supported_is_named() {
    let server = Server::start().await;
    let path = "/api/v1/training_runs/r/checkpoints/weights/a/archive";
    let refused = server.call(Method::GET, path, &[], Body::empty()).await.refused(404);
    assert_eq!(refused, format!("{path} is not supported by this server"));
}

#[tokio::test]
async fn a_wrong_method_is_405_in_json() {
    let server = Server::start().await;
    let refused = server.get("create_model").await.refused(405);
    assert_eq!(refused, "GET is not allowed on /api/v1/create_model");
}

#[tokio::test]
async fn the_document_is_served_without_a_key() {
    let server = Server::start().await;
    let got = server.send(Request::get("/openapi.json").body(Body::empty()).unwrap()).await;
    assert_eq!(got.json()["info"]["title"], "Trainyard");
}

#[tokio::test]
async fn a_key_may_be_a_bearer_token() {
    let keys = Keys::new(vec![(Keys::digest("tml-known"), TenantId::new("alpha"))]);
    let server = Server::with(Limits::default(), keys).await;
    let ask = async |value: &str| {
        let request = Request::get("/api/v1/sessions").header("authorization", value).body(Body::empty()).unwrap();
        server.send(request).await
    };
    ask("Bearer tml-known").await.json();
    ask("bearer  tml-known").await.json();
    assert!(ask("Bearer tml-other").await.refused(401).contains("not known"));
    for missing in ["Basic tml-known", "Bearer", ""] {
        assert!(ask(missing).await.refused(401).contains("is missing"), "{missing:?}");
    }
    // A key of its own header counts first.
    let headers = [("x-api-key", "tml-other"), ("authorization", "Bearer tml-known")];
    server.call(Method::GET, "/api/v1/sessions", &headers, Body::empty()).await.refused(401);
}

#[tokio::test]
async fn without_keys_what_a_proxy_passed_on_is_refused() {
    let ask = async |server: &Server, name: &str| {
        server.call(Method::GET, "/api/v1/sessions", &[(name, "203.0.113.9")], Body::empty()).await
    };
    let local = Server::start().await;
    let trusting = Server::with(Limits::default(), Keys::local().trust_forwarded()).await;
    let known = Keys::new(vec![(Keys::digest(KEY), TenantId::new("alpha"))]);
    let keyed = Server::with(Limits::default(), known).await;
    for header in ["forwarded", "x-forwarded-for", "x-real-ip"] {
        assert!(ask(&local, header).await.refused(403).contains("--insecure-no-auth"), "{header}");
        ask(&trusting, header).await.json();
        ask(&keyed, header).await.json();
    }
    ask(&local, "x-other").await.json();
}

#[tokio::test]
async fn the_address_itself_says_what_it_is() {
    let server = Server::start().await;
    server.state.set_ready();
    let open = async |path: &str| server.send(Request::get(path).body(Body::empty()).unwrap()).await.json();
    assert_eq!(open("/").await["openapi"], "/openapi.json");
    assert_eq!(open("/healthz").await, json!({"status": "ok"}));
}

#[tokio::test]
async fn what_cannot_be_read_is_named_in_plain_words() {
    let server = Server::start().await;
    for (query, text) in [
        ("limit=abc", "limit: \"abc\" is not a whole number from 0"),
        ("offset=-1", "offset: \"-1\" is not a whole number from 0"),
        ("limit=4294967296", "limit: \"4294967296\" is not a whole number from 0"),
    ] {
        assert_eq!(server.get(&format!("checkpoints?{query}")).await.refused(400), text);
    }
    let headers = [("content-type", "application/json")];
    let empty = server.call(Method::POST, "/api/v1/get_info", &headers, Body::empty()).await.refused(400);
    assert_eq!(empty, "expected a JSON object, found an empty body: missing field `model_id`");
}

#[tokio::test]
async fn a_checkpoint_id_without_its_kind_is_said_to_lack_it() {
    let server = Server::start().await;
    let run = server.run().await;
    for (method, rest) in [
        (Method::DELETE, "ckpt0"),
        (Method::PUT, "ckpt0/ttl"),
        (Method::POST, "ckpt0/publish"),
        (Method::DELETE, "ckpt0/publish"),
        (Method::DELETE, "other/ckpt0"),
        (Method::PUT, "other/ckpt0/ttl"),
    ] {
        let path = format!("{run}/checkpoints/{rest}");
        let refused = server.on_run(method.clone(), &path, Some(json!({"ttl_seconds": null}))).await.refused(400);
        assert!(refused.contains("expected weights/<name>, sampler_weights/<name>"), "{method} {rest}: {refused}");
    }
    server.on_run(Method::DELETE, "none/checkpoints/ckpt0", None).await.refused(404);
    server.on_run(Method::PUT, &format!("{run}/checkpoints/weights/a"), Some(json!({}))).await.refused(405);
    let path = format!("/api/v1/training_runs/{run}/checkpoints/ckpt0");
    server.send(Request::delete(path).body(Body::empty()).unwrap()).await.refused(401);
}

#[tokio::test]
async fn the_checkpoints_of_a_run_are_one_page() {
    let server = Server::start().await;
    let run = server.run().await;
    for (seq_id, name) in [(1, "a"), (2, "b")] {
        server.checkpoint(&run, seq_id, "weights", name).await;
    }
    let listed = server.get(&format!("training_runs/{run}/checkpoints")).await.json();
    assert_eq!(listed["cursor"], json!({"offset": 0, "limit": 2, "total_count": 2}));
}
