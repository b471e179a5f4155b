//! `GET /console/data/overview`: workers, queues, speed and failures.

use std::collections::BTreeMap;

use axum::extract::State;
use trainyard_protocol::TenantId;
use trainyard_scheduler::{
    EngineReport, FailedRequest, QueuedRequests, RequestState, Timestamp, TokenRate, Tokens, WorkerStatus,
};
use trainyard_wire::overview::{EngineUse, Failure, MinuteRate, Overview, ServedModel, TenantQueue, Worker};
use trainyard_wire::timestamp::rfc3339;

use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, Principal};
use crate::error::ApiError;
use crate::state::AppState;

/// Period for which speed is shown, and the length of its intervals, in milliseconds.
const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;
/// Period for which failures are shown, in milliseconds, and their maximum number.
const DAY: i64 = 24 * HOUR;
const FAILURES: u32 = 20;

/// Returns the service as the caller may see it: all tenants for an operator's admin, only its own for other callers.
pub(super) async fn overview(State(state): State<AppState>, Caller(caller): Caller) -> Reply<Overview> {
    Ok(Answer(look(&state, &caller).await?))
}

/// Returns the current content of the page.
pub(super) async fn look(state: &AppState, caller: &Principal) -> Result<Overview, ApiError> {
    let (scheduler, now, tenant) = (&state.scheduler, state.clock.now(), &caller.tenant);
    let sees_all = caller.operator && caller.role == trainyard_scheduler::Role::Admin;
    let own = scheduler.own_worker();
    let mut queued = scheduler.queued_by_tenant().await?;
    queued.retain(|requests| sees_all || requests.tenant == *tenant);
    let tenants = match sees_all {
        true => scheduler.directory().organisations().await?.into_iter().map(|found| found.name).collect(),
        false => vec![tenant.clone()],
    };
    let (mut rates, mut latest, mut failures) = (empty_minutes(now), MinuteRate::default(), Vec::new());
    latest.minute = now.as_millis() - MINUTE;
    for tenant in &tenants {
        for TokenRate { from, tokens } in token_rates(state, tenant, now.as_millis() - HOUR).await? {
            // The first minute and the present one are not complete.
            if let Some(sum) = rates.get_mut(&from.as_millis()) {
                add(sum, &tokens);
            }
        }
        for TokenRate { tokens, .. } in token_rates(state, tenant, latest.minute).await? {
            add(&mut latest, &tokens);
        }
        failures.extend(scheduler.failed_requests(tenant, Timestamp(now.as_millis() - DAY), FAILURES).await?);
    }
    failures.sort_by_key(|failed| std::cmp::Reverse(failed.at));
    failures.truncate(FAILURES as usize);
    let workers = scheduler.worker_statuses().await?.into_iter();
    let models = state.models.list();
    Ok(Overview {
        time: rfc3339(now.as_millis()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        models: models
            .iter()
            .map(|model| ServedModel {
                name: model.name.clone(),
                arch: model.arch.clone(),
                context: model.max_context_length,
                parameters: model.parameters,
            })
            .collect(),
        workers: workers
            .map(|WorkerStatus { id, models, engine }| {
                let own = own == Some(id.as_str());
                let report = if own { Some(scheduler.engine_report()) } else { engine };
                // What an engine holds and does is of all tenants.
                Worker { own, id, models, engine: report.filter(|_| sees_all).map(engine_use) }
            })
            .collect(),
        engine: own.filter(|_| sees_all).map(|_| engine_use(scheduler.engine_report())),
        queues: queues(&queued, now),
        rates: rates.into_values().collect(),
        latest,
        failures: failures.into_iter().map(failure).collect(),
    })
}

fn engine_use(report: EngineReport) -> EngineUse {
    EngineUse {
        memory_bytes: report.memory_bytes(),
        active_samples: report.active_samples,
        loaded_runs: report.loaded_runs,
        memory: report.memory,
        memory_budget: report.memory_budget,
        kv_bytes: report.kv_bytes,
        kv_limit: report.kv_limit,
        microbatch_tokens: report.microbatch_tokens,
        microbatch_capacity: report.microbatch_capacity,
    }
}

/// Groups the rows by tenant; they arrive in that order.
fn queues(rows: &[QueuedRequests], now: Timestamp) -> Vec<TenantQueue> {
    let of_tenant = |rows: &[QueuedRequests]| {
        let queued = || rows.iter().filter(|row| row.state == RequestState::Queued);
        let oldest = queued().map(|row| row.oldest).min();
        TenantQueue {
            tenant: rows[0].tenant.to_string(),
            queued: queued().map(|row| row.count).sum(),
            running: rows.iter().filter(|row| row.state == RequestState::Running).map(|row| row.count).sum(),
            waiting_seconds: oldest.map_or(0.0, |oldest| oldest.until(now).as_secs_f64()),
        }
    };
    rows.chunk_by(|a, b| a.tenant == b.tenant).map(of_tenant).collect()
}

/// Returns the complete minutes of the last hour by their start, without tokens.
fn empty_minutes(now: Timestamp) -> BTreeMap<i64, MinuteRate> {
    let present = now.as_millis().div_euclid(MINUTE);
    let starts = (present - HOUR / MINUTE + 1..present).map(|minute| minute * MINUTE);
    starts.map(|minute| (minute, MinuteRate { minute, ..MinuteRate::default() })).collect()
}

async fn token_rates(state: &AppState, tenant: &TenantId, after: i64) -> Result<Vec<TokenRate>, ApiError> {
    Ok(state.scheduler.token_rates(tenant, Timestamp(after), MINUTE as u32).await?)
}

fn add(sum: &mut MinuteRate, tokens: &Tokens) {
    sum.trained += tokens.trained;
    sum.prefill += tokens.prefill;
    sum.sampled += tokens.sampled;
}

fn failure(failed: FailedRequest) -> Failure {
    let FailedRequest { id, kind, run, at, error } = failed;
    Failure {
        request_id: id.to_string(),
        kind: kind.as_str().to_owned(),
        run_id: run.map(|run| run.to_string()),
        time: rfc3339(at.as_millis()),
        category: error.category,
        message: error.message,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;
    use serde_json::Value;
    use trainyard_protocol::TenantId;
    use trainyard_scheduler::{Encoding, Measured, Outcome, Role};

    use super::{MINUTE, Tokens};
    use crate::api::tests::testing::*;
    use crate::auth::{Keys, SeedKey};
    use crate::state::Limits;

    async fn overview(server: &Server, key: &str) -> Value {
        let request = Request::get("/console/data/overview").header("x-api-key", key).body(Body::empty()).unwrap();
        let got = server.send(request).await;
        assert_eq!(got.status, 200);
        got.json()
    }

    #[tokio::test]
    async fn minutes_without_work_have_no_tokens() {
        let server = Server::start().await;
        let directory = server.state.scheduler.directory();
        directory.seed_organisations(vec![(TenantId::new("local"), true)]).await.unwrap();
        let run = server.run().await;
        let id = server.post("forward_backward", backward(&run, 1)).await.text("request_id");
        let work = server.next_work().await;
        let used = Tokens { trained: 600, ..Tokens::default() };
        let outcome = || Outcome::Succeeded { encoding: Encoding::Json, payload: "{}".into() };
        server.state.scheduler.complete_encoded_by(work.request, Measured::from(used), Box::new(outcome));
        server.poll(&id).await;
        let trained = |shown: &Value| -> Vec<u64> {
            shown["rates"].as_array().unwrap().iter().map(|rate| rate["trained"].as_u64().unwrap()).collect()
        };
        // The clock is 20 seconds into a minute.
        let shown = overview(&server, KEY).await;
        assert_eq!((trained(&shown), &shown["latest"]["trained"]), (vec![0; 59], &Value::from(600)));
        server.clock.advance(61);
        let shown = overview(&server, KEY).await;
        let minutes: Vec<i64> =
            shown["rates"].as_array().unwrap().iter().map(|rate| rate["minute"].as_i64().unwrap()).collect();
        assert!(
            minutes.iter().all(|minute| minute % MINUTE == 0)
                && minutes.windows(2).all(|pair| pair[1] - pair[0] == MINUTE)
        );
        assert_eq!((trained(&shown)[57..].to_vec(), &shown["latest"]["trained"]), (vec![0, 600], &Value::from(0)));
        server.clock.advance(600);
        assert_eq!(trained(&overview(&server, KEY).await)[47..], [0, 600, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[tokio::test]
    async fn engines_are_shown_to_the_operator_because_they_serve_all_tenants() {
        let key = |text: &str, tenant: &str, role| SeedKey {
            digest: Keys::digest(text),
            tenant: TenantId::new(tenant),
            name: tenant.to_owned(),
            role,
        };
        let entries = vec![
            key("tml-operator", "ops", Role::Admin),
            key("tml-operators-member", "ops", Role::Member),
            key("tml-other", "acme", Role::Admin),
        ];
        let keys = Keys::seed(entries, Vec::new(), vec![TenantId::new("ops")]);
        let server = Server::with(Limits::default(), keys).await;
        let shown = overview(&server, "tml-operator").await;
        assert!(shown["engine"].is_object() && shown["workers"][0]["engine"].is_object(), "{shown}");
        for key in ["tml-operators-member", "tml-other"] {
            let hidden = overview(&server, key).await;
            assert!(hidden["engine"].is_null() && hidden["workers"][0]["engine"].is_null(), "{hidden}");
            assert_eq!(hidden["workers"][0]["id"], shown["workers"][0]["id"]);
        }
    }
}
