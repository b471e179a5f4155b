//! What holds for all endpoints together.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;
use trainyard_protocol::TenantId;

use super::TABLE;
use super::testing::*;
use crate::auth::Keys;
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
    let routed: BTreeSet<_> = TABLE.iter().map(|(method, path)| (method.to_string(), path.to_string())).collect();
    assert_eq!(described, routed);
}

#[tokio::test]
async fn every_keyed_endpoint_refuses_a_missing_or_malformed_key() {
    let server = Server::start().await;
    for (method, path) in TABLE {
        if path.contains("healthz") || path.contains("downloads") || *path == "/openapi.json" {
            continue;
        }
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
        let plain = Request::builder().method(method.clone()).uri(*path).body(Body::empty()).unwrap();
        assert!(server.send(plain).await.refused(401).contains("X-API-Key"));
        server.call(method, path, &[("x-api-key", "sk-1")], Body::empty()).await.refused(401);
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
    for (path, body) in [
        ("session_heartbeat", json!({"session_id": session})),
        ("get_info", json!({"model_id": run})),
        ("optim_step", adam(&run, 1, 0.1)),
        ("asample", sample(&sampler, 0)),
        ("retrieve_future", json!({"request_id": future})),
        ("cancel_future", json!({"request_id": future})),
        ("create_model", json!({"session_id": session, "model_seq_id": 1, "base_model": MODEL})),
        ("create_sampling_session", json!({"session_id": session, "sampling_session_seq_id": 1, "base_model": MODEL})),
    ] {
        server.post_as("tml-b", path, body).await.refused(404);
    }
    for path in [format!("sessions/{session}"), format!("training_runs/{run}"), format!("samplers/{sampler}")] {
        let headers = [("x-api-key", "tml-b")];
        server.call(Method::GET, &format!("/api/v1/{path}"), &headers, Body::empty()).await.refused(404);
    }
}

#[tokio::test]
async fn what_is_not_supported_is_named() {
    let server = Server::start().await;
    for (method, path) in [
        (Method::POST, "copy_weights"),
        (Method::POST, "join_sampling_session"),
        (Method::POST, "create_custom_loss"),
        (Method::POST, "sessions/search"),
        (Method::PUT, "sessions/s/project"),
        (Method::GET, "sessions/s/trace_export"),
        (Method::GET, "audit"),
        (Method::GET, "billing/usage/events"),
        (Method::GET, "auth/apikey/me"),
        (Method::POST, "auth/token"),
        (Method::GET, "training_runs/r/checkpoints/weights/a/archive"),
    ] {
        let full = format!("/api/v1/{path}");
        let refused = server.call(method, &full, &[], Body::empty()).await.refused(404);
        assert_eq!(refused, format!("{full} is not supported by this server"));
    }
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
