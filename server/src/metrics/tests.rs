#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use tower::ServiceExt;

use super::*;
use crate::api::tests::testing::{Server, sample};

const DOCUMENTED: &str = include_str!("../../../docs/operators/metrics.md");

async fn get(server: &Server, access: Access, header: Option<&str>) -> (StatusCode, String) {
    let router = router(Arc::clone(&server.state.metrics), server.state.scheduler.clone(), access);
    let mut request = Request::get(PATH).header(header::HOST, "localhost:8000");
    if let Some(value) = header {
        request = request.header(header::AUTHORIZATION, value);
    }
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Names and kinds as queries use them.
fn exposed(text: &str) -> BTreeMap<String, String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            (format!("{name}{suffix}"), kind.to_owned())
        })
        .collect()
}

/// The rows of the page's tables: name, kind.
fn documented() -> BTreeMap<String, String> {
    let named = |row: &&str| row.starts_with("`trainyard_") || row.starts_with("`process_");
    let rows = DOCUMENTED.lines().filter_map(|line| line.strip_prefix("| ")).filter(named);
    rows.map(|row| {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        (cells.next().unwrap(), cells.next().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn the_page_lists_exactly_what_is_exposed() {
    let server = Server::start().await;
    server.session().await;
    let (status, text) = get(&server, Access::Open, None).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(exposed(&text), documented());
}

#[tokio::test]
async fn requests_are_counted_by_endpoint_and_status_and_never_by_id() {
    let server = Server::start().await;
    let run = server.run().await;
    let sampler = server.sampler().await;
    server.post("asample", sample(&sampler, 0)).await.json();
    server.get(&format!("training_runs/{run}")).await.json();
    server.get("nothing/of/the/sort").await.refused(404);
    let (_, text) = get(&server, Access::Open, None).await;
    for line in [
        "trainyard_http_requests_total{method=\"POST\",endpoint=\"/api/v1/create_session\",status=\"200\"} 2",
        "trainyard_http_requests_total{method=\"GET\",endpoint=\"/api/v1/training_runs/{run_id}\",status=\"200\"} 1",
        "trainyard_http_requests_total{method=\"GET\",endpoint=\"unmatched\",status=\"404\"} 1",
        "trainyard_http_request_seconds_count{endpoint=\"/api/v1/asample\"} 1",
        "trainyard_queued_requests{kind=\"sample\"} 1",
        "trainyard_requests_total{kind=\"create_model\",outcome=\"succeeded\"} 1",
        "trainyard_request_wait_seconds_count{kind=\"create_model\"} 1",
        "trainyard_request_service_seconds_count{kind=\"create_model\"} 1",
        "trainyard_sessions 2",
        "trainyard_runs 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(!text.contains(&run), "{text}");
}

#[tokio::test]
async fn a_token_guards_and_without_one_only_loopback_is_open() {
    let server = Server::start().await;
    assert!(Access::new(None, true) == Access::Open && Access::new(None, false) == Access::Off);
    assert_eq!(get(&server, Access::Off, None).await.0, StatusCode::NOT_FOUND);
    for loopback in [true, false] {
        let guarded = || Access::new(Some("s3cret"), loopback);
        for wrong in [None, Some("Bearer s3cre"), Some("s3cret"), Some("Bearer ")] {
            assert_eq!(get(&server, guarded(), wrong).await.0, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(get(&server, guarded(), Some("Bearer s3cret")).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn open_metrics_are_for_this_machine_alone() {
    let server = Server::start().await;
    let router = router(Arc::clone(&server.state.metrics), server.state.scheduler.clone(), Access::Open);
    let request = Request::get(PATH).header("x-forwarded-for", "203.0.113.9").body(Body::empty()).unwrap();
    assert_eq!(router.oneshot(request).await.unwrap().status(), StatusCode::FORBIDDEN);
}
