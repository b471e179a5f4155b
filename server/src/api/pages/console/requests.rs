//! `GET /console/data/runs/{run_id}/requests`: a run's newest requests, and why the next one waits.

use axum::extract::State;
use serde::Serialize;
use trainyard_protocol::{RunId, TenantId};
use trainyard_scheduler::{RequestState, RunRequest};
use trainyard_wire::timestamp::rfc3339;

use crate::api::futures::retrieve_future::waiting_reason;
use crate::api::request::extract::ApiPath;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

const NEWEST: u32 = 50;

/// Content of the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Requests {
    requests: Vec<RequestLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct RequestLine {
    request_id: String,
    seq_id: i64,
    kind: &'static str,
    state: &'static str,
    tokens: u64,
    created: String,
    /// Time from acceptance to the end, if the request has ended.
    seconds: Option<f64>,
    /// Reason of a failure or of a wait.
    reason: Option<String>,
}

/// Returns the newest requests of one of the caller's runs.
pub(super) async fn requests(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(run_id): ApiPath<String>,
) -> Reply<Requests> {
    Ok(Answer(look(&state, &tenant, &RunId::new(run_id)).await?))
}

/// Returns the newest requests of a run.
pub(super) async fn look(state: &AppState, tenant: &TenantId, run: &RunId) -> Result<Requests, ApiError> {
    let found = state.scheduler.newest_requests(tenant, run, NEWEST).await?;
    let waiting = found.iter().rev().find(|request| request.state == RequestState::Queued);
    let reason = match waiting {
        Some(request) => waiting_reason(state, tenant, &request.id).await,
        None => None,
    };
    let next = waiting.map(|request| request.seq_id);
    let lines = found.into_iter().map(|request| {
        let reason = if Some(request.seq_id) == next { reason.clone() } else { None };
        line(request, reason)
    });
    Ok(Requests { requests: lines.collect() })
}

fn line(request: RunRequest, reason: Option<String>) -> RequestLine {
    let seconds = request.finished_at.map(|end| request.created_at.until(end).as_secs_f64());
    RequestLine {
        request_id: request.id.to_string(),
        seq_id: request.seq_id,
        kind: request.kind.as_str(),
        state: request.state.as_str(),
        tokens: request.tokens,
        created: rfc3339(request.created_at.as_millis()),
        seconds,
        reason: request.error.map(|error| error.message).or(reason),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::num::NonZeroU64;

    use axum::body::Body;
    use axum::http::Method;
    use serde_json::Value;
    use trainyard_scheduler::TenantPolicy;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn of_what_waits_the_next_one_says_why() {
        let policy = TenantPolicy { tokens_per_minute: NonZeroU64::new(60), ..TenantPolicy::default() };
        let server = Server::granted(policy).await;
        let run = server.run().await;
        let sampler = server.sampler().await;
        // Each takes 2 + 2 * 4 of the 60 tokens.
        for seq_id in 0..6 {
            server.post("asample", sample(&sampler, seq_id)).await.json();
            server.next_work().await;
        }
        for seq_id in 1..=2 {
            server.post("forward_backward", backward(&run, seq_id)).await.json();
        }
        // The reason of the wait is known once the worker has asked for more.
        assert_eq!(server.state.scheduler.take_work(), vec![]);
        let path = format!("/console/data/runs/{run}/requests");
        let requests =
            || async { server.call(Method::GET, &path, &[], Body::empty()).await.json()["requests"].clone() };
        let found = requests().await;
        assert_eq!(found[0]["seq_id"], 2);
        assert_eq!((&found[0]["state"], &found[0]["reason"]), (&Value::from("queued"), &Value::Null));
        let reason = found[1]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("60 tokens per minute are used up"), "{found}");
        server.clock.advance(60);
        server.next_work().await;
        assert_eq!(requests().await[1]["reason"], Value::Null);
    }
}
