//! `GET /console/data/overview`: workers, queues, speed and failures.

use std::collections::BTreeMap;

use axum::extract::State;
use trainyard_scheduler::{
    EngineReport, FailedRequest, QueuedRequests, RequestState, Timestamp, TokenRate, Tokens, WorkerStatus,
};
use trainyard_wire::overview::{EngineUse, Failure, MinuteRate, Overview, ServedModel, TenantQueue, Worker};
use trainyard_wire::timestamp::rfc3339;

use crate::api::request::respond::{Answer, Reply};
use crate::auth::{Caller, Principal};
use crate::error::ApiError;
use crate::state::AppState;

/// How far back speed is shown, in ms, and in which stretches.
const HOUR: i64 = 3_600_000;
const MINUTE: u32 = 60_000;
/// How far back failures are shown, in ms, and how many.
const DAY: i64 = 24 * HOUR;
const FAILURES: u32 = 20;

/// The service as the caller may see it: all tenants for an operator's admin, only its own for other callers.
pub(super) async fn overview(State(state): State<AppState>, Caller(caller): Caller) -> Reply<Overview> {
    Ok(Answer(look(&state, &caller).await?))
}

/// The current content of the page.
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
    let (mut rates, mut failures) = (BTreeMap::<Timestamp, Tokens>::new(), Vec::new());
    for tenant in &tenants {
        for TokenRate { from, tokens } in
            scheduler.token_rates(tenant, Timestamp(now.as_millis() - HOUR), MINUTE).await?
        {
            let sum = rates.entry(from).or_default();
            sum.trained += tokens.trained;
            sum.prefill += tokens.prefill;
            sum.sampled += tokens.sampled;
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
                Worker { own, id, models, engine: report.map(engine_use) }
            })
            .collect(),
        engine: own.map(|_| engine_use(scheduler.engine_report())),
        queues: queues(&queued, now),
        rates: rates.into_iter().map(rate).collect(),
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

/// Queues by tenant; the rows arrive in that order.
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

fn rate((from, tokens): (Timestamp, Tokens)) -> MinuteRate {
    MinuteRate { minute: from.as_millis(), trained: tokens.trained, prefill: tokens.prefill, sampled: tokens.sampled }
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
