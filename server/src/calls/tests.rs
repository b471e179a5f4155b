#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn_with_state;
use tower::ServiceExt;

use super::*;
use crate::api::tests::testing::Server;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The API with named calls.
async fn named(records: bool) -> (Server, Router) {
    let next = AtomicU64::new(0);
    let random: Random = Arc::new(move || next.fetch_add(1, Ordering::Relaxed));
    let server = Server::start().await;
    let router = server.router().layer(from_fn_with_state(Calls { random, records }, identify));
    (server, router)
}

/// Sends a request; returns the id, the trace and the body of the answer.
async fn ask(router: &Router, headers: &[(&str, &str)]) -> (String, TraceContext, String) {
    let mut request = Request::get("/api/v1/nothing");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let text = |name: HeaderName| response.headers()[name].to_str().unwrap().to_owned();
    let (id, trace) = (text(REQUEST_ID), TraceContext::parse(&text(TRACE_PARENT)).unwrap());
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    (id, trace, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_clients_id_is_repeated_if_it_is_one() {
    let (_server, router) = named(false).await;
    let longest = "x".repeat(128);
    for id in ["a", "0a1B-2_c.3:/+=@", &longest] {
        let (answered, _, body) = ask(&router, &[("x-request-id", id)]).await;
        assert_eq!(answered, id);
        assert!(body.contains(&format!("\"x_request_id\":\"{id}\"")), "{body}");
    }
    let too_long = "x".repeat(129);
    for id in ["", "a b", "a\"", "tml-secret", "a,b", &too_long] {
        let (answered, ..) = ask(&router, &[("x-request-id", id)]).await;
        assert!(answered.len() == 32 && answered != id, "{answered}");
    }
    let (answered, ..) = ask(&router, &[("x-request-id", "a"), ("x-request-id", "b")]).await;
    assert_eq!(answered.len(), 32);
}

#[tokio::test]
async fn a_trace_goes_on_or_begins() {
    let (_server, router) = named(true).await;
    let parent = TraceContext::parse(PARENT).unwrap();
    let (_, trace, _) = ask(&router, &[("traceparent", PARENT)]).await;
    assert!(trace.trace_id == parent.trace_id && trace.span_id != parent.span_id && trace.sampled);
    let (_, trace, _) = ask(&router, &[("traceparent", &PARENT.replace("-01", "-00"))]).await;
    assert!(trace.trace_id == parent.trace_id && !trace.sampled);
    for wrong in [&[("traceparent", "00-1-2-03")][..], &[("traceparent", PARENT), ("traceparent", PARENT)], &[]] {
        let (_, trace, _) = ask(&router, wrong).await;
        assert!(trace.trace_id != parent.trace_id && trace.sampled, "{wrong:?}");
    }
    let (_server, silent) = named(false).await;
    assert!(!ask(&silent, &[]).await.1.sampled);
}

#[test]
fn the_state_of_a_trace_that_does_not_go_on_is_dropped() {
    let calls = Calls { random: Arc::new(|| 7), records: false };
    let state = |headers: &[(&'static str, &'static str)]| {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        calls.call(&HeaderMap::from_iter(pairs)).trace_state
    };
    assert_eq!(state(&[("traceparent", PARENT), ("tracestate", "a=1")]).as_deref(), Some("a=1"));
    assert_eq!(state(&[("traceparent", PARENT), ("tracestate", "a")]), None);
    assert_eq!(state(&[("tracestate", "a=1")]), None);
}
