//! `GET /livez` and `GET /readyz`, for supervisors and load balancers. Neither needs a key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use tokio::time::timeout;
use trainyard_http::answer::json_response;

use crate::state::AppState;

/// Maximum duration of a check.
const LIMIT: Duration = Duration::from_secs(2);

/// Message for an almost full disk.
const DISK_LOW: &str = "almost full: saves, new runs and large requests are refused";

/// Reports that the process runs. Whether it can serve requests is reported by [`readyz`]: a restart would not help.
pub(crate) async fn livez() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Reports whether requests should be sent to this server: each check with `ok` or its problem, and 503 unless all are
/// `ok`. An almost full disk does not cause a 503: other servers use the same disk, and most requests are still
/// accepted. Neither does a wrong clock.
pub(crate) async fn readyz(State(state): State<AppState>) -> Response {
    let (written, (read, workers), storage) =
        tokio::join!(state.store_probe.outcome(&state.scheduler), store_and_workers(&state), storage(&state));
    let store = if read == "ok" { written } else { read };
    let models = if state.is_ready() { "ok" } else { "still loading" };
    let draining = if state.scheduler.is_draining() { "shutting down" } else { "ok" };
    let schema = if state.scheduler.is_outdated() { "needs a newer release" } else { "ok" };
    let mut checks = BTreeMap::from([
        ("store", store),
        ("schema", schema),
        ("workers", workers),
        ("storage", storage),
        ("models", models),
        ("shutdown", draining),
    ]);
    let ready = checks.values().all(|check| *check == "ok");
    let clock = clock(state.scheduler.own_clock_ahead_ms());
    let disk = if state.disks.is_low() { DISK_LOW } else { "ok" };
    let (status, summary) = match (ready, disk, &*clock) {
        (false, ..) => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
        (true, "ok", "ok") => (StatusCode::OK, "ok"),
        (true, ..) => (StatusCode::OK, "degraded"),
    };
    checks.insert("disk", disk);
    checks.insert("clock", &clock);
    json_response(status, &json!({ "status": summary, "checks": checks }))
}

/// Reports clocks that differ by more than a minute. What expires follows the database's clock.
fn clock(own_ahead_ms: i64) -> Cow<'static, str> {
    let seconds = own_ahead_ms.unsigned_abs() / 1_000;
    match (seconds, own_ahead_ms) {
        (0..=60, _) => "ok".into(),
        (_, 0..) => format!("this machine's clock is {seconds} s ahead of the database's").into(),
        (_, _) => format!("this machine's clock is {seconds} s behind the database's").into(),
    }
}

async fn store_and_workers(state: &AppState) -> (&'static str, &'static str) {
    match timeout(LIMIT, state.scheduler.live_workers()).await {
        Ok(Ok(0)) => ("ok", "no worker has sent a heartbeat"),
        Ok(Ok(_)) => ("ok", "ok"),
        Ok(Err(_)) => ("can't be read", "unknown"),
        Err(_) => ("does not answer", "unknown"),
    }
}

async fn storage(state: &AppState) -> &'static str {
    match timeout(LIMIT, state.storage.prepare("checkpoints")).await {
        Ok(Ok(())) => "ok",
        Ok(Err(_)) => "can't be used",
        Err(_) => "does not answer",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::fs;
    use std::path::Path;

    use axum::body::Body;
    use axum::http::Request;
    use serde_json::{Value, json};

    use crate::api::tests::testing::*;

    async fn readiness(server: &Server) -> (u16, Value) {
        let answer = server.send(Request::get("/readyz").body(Body::empty()).unwrap()).await;
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap())
    }

    #[tokio::test]
    async fn readiness_says_what_is_missing_and_liveness_does_not_care() {
        let server = Server::start().await;
        let (status, body) = readiness(&server).await;
        assert_eq!((status, &body["checks"]["models"]), (503, &json!("still loading")));
        server.state.set_ready();
        let (status, body) = readiness(&server).await;
        assert_eq!((status, &body["status"]), (200, &json!("ok")), "{body}");
        server.state.scheduler.begin_drain();
        let (status, body) = readiness(&server).await;
        assert_eq!((status, &body["checks"]["shutdown"]), (503, &json!("shutting down")));
        let alive = server.send(Request::get("/livez").body(Body::empty()).unwrap()).await;
        assert_eq!(alive.status, 200);
    }

    #[tokio::test]
    async fn a_disk_that_is_almost_full_is_said_and_requests_still_come() {
        let server = Server::start().await;
        server.state.set_ready();
        server.set_free(0);
        let (status, body) = readiness(&server).await;
        assert_eq!((status, &body["status"]), (200, &json!("degraded")), "{body}");
        assert!(body["checks"]["disk"].as_str().unwrap().contains("almost full"));
        server.set_free(1 << 40);
        assert_eq!(readiness(&server).await.1["status"], "ok");
    }

    #[test]
    fn clocks_that_differ_by_more_than_a_minute_are_reported() {
        assert_eq!((super::clock(-60_900), super::clock(60_000)), ("ok".into(), "ok".into()));
        assert_eq!(super::clock(75_400), "this machine's clock is 75 s ahead of the database's");
        assert_eq!(super::clock(-61_000), "this machine's clock is 61 s behind the database's");
    }

    #[tokio::test]
    async fn a_storage_that_is_gone_is_not_ready() {
        let server = Server::start().await;
        server.state.set_ready();
        let folder = server.state.storage.local(Path::new("checkpoints")).unwrap();
        fs::remove_dir_all(&folder).ok();
        fs::write(&folder, "not a folder").unwrap();
        let (status, body) = readiness(&server).await;
        assert_eq!((status, &body["checks"]["storage"]), (503, &json!("can't be used")));
    }
}
