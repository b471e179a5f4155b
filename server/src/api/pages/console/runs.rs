//! `GET /console/data/runs`: runs with their progress, filtered and sorted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{RunId, TenantId};
use trainyard_scheduler::{ListedRun, Page, RunProgress};
use trainyard_wire::timestamp::rfc3339;

use crate::api::request::extract::ApiQuery;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::state::AppState;

/// Number of newest runs that a filter examines.
const LOOKED_AT: u32 = 5_000;
/// Maximum number of runs in one response.
const PAGE: usize = 200;

/// Filter and order of the runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunsQuery {
    /// Words that a run's id, model, project, tags or metadata must all contain; `project=…`, `tag=…` and `key=…`
    /// select one of these.
    q: String,
    /// `active`, `ended`, `creating` or `failed`; empty for all.
    state: String,
    /// `created` or `last_request` for the newest first, `steps` for the most first, `loss_per_token` and `loss` for the
    /// smallest first.
    sort: String,
    limit: Option<usize>,
    offset: usize,
}

/// A page of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Runs {
    runs: Vec<RunLine>,
    /// Number of runs on all pages.
    total: usize,
    /// Whether older runs were not examined.
    truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct RunLine {
    run_id: String,
    /// Metadata `name` of the run.
    name: Option<String>,
    base_model: String,
    lora_rank: Option<u32>,
    state: &'static str,
    project: Option<String>,
    tags: Vec<String>,
    user_metadata: BTreeMap<String, String>,
    created: String,
    last_request: String,
    steps: u64,
    /// `loss:sum` of the newest backward pass, and the same per weighted token.
    loss: Option<f64>,
    loss_per_token: Option<f64>,
}

/// Lists the caller's runs.
pub(super) async fn runs(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiQuery(query): ApiQuery<RunsQuery>,
) -> Reply<Runs> {
    Ok(Answer(look(&state, &tenant, &query).await?))
}

/// An order of runs. Equal ones stay in the order of their creation, the newest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Created,
    LastRequest,
    Steps,
    Loss,
    LossPerToken,
}

/// Returns the page for a query.
pub(super) async fn look(state: &AppState, tenant: &TenantId, query: &RunsQuery) -> Result<Runs, ApiError> {
    let order = match query.sort.as_str() {
        "" | "created" => Order::Created,
        "last_request" => Order::LastRequest,
        "steps" => Order::Steps,
        "loss" => Order::Loss,
        "loss_per_token" => Order::LossPerToken,
        sort => {
            let text = format!("sort: expected created, last_request, steps, loss or loss_per_token, found {sort:?}");
            return Err(ApiError::invalid(text));
        }
    };
    if !["", "active", "ended", "creating", "failed"].contains(&query.state.as_str()) {
        return Err(ApiError::invalid(format!(
            "state: expected active, ended, creating or failed, found {:?}",
            query.state
        )));
    }
    let limit = query.limit.unwrap_or(100);
    if !(1..=PAGE).contains(&limit) {
        return Err(ApiError::invalid(format!("limit: {limit} is not between 1 and {PAGE}")));
    }
    let words: Vec<String> = query.q.split_whitespace().map(str::to_lowercase).collect();
    if order == Order::Created && query.state.is_empty() && words.is_empty() {
        return newest(state, tenant, limit, query.offset).await;
    }
    let mut found = state.scheduler.newest_runs(tenant, Page { limit: LOOKED_AT, offset: 0 }).await?;
    let truncated = found.len() >= LOOKED_AT as usize;
    found.retain(|listed| {
        (query.state.is_empty() || query.state == state_of(listed)) && words.iter().all(|word| contains(listed, word))
    });
    match order {
        Order::Created => {}
        Order::LastRequest => found.sort_by_key(|listed| Reverse(listed.run.last_request_at)),
        Order::Steps | Order::Loss | Order::LossPerToken => {
            let mut runs: Vec<_> = progress_of(state, tenant, &found).await?.into_iter().zip(found).collect();
            match order {
                Order::Loss => runs.sort_by(|(a, _), (b, _)| or_last(a.loss).total_cmp(&or_last(b.loss))),
                Order::LossPerToken => {
                    runs.sort_by(|(a, _), (b, _)| or_last(a.loss_per_token).total_cmp(&or_last(b.loss_per_token)));
                }
                _ => runs.sort_by_key(|(progress, _)| Reverse(progress.steps)),
            }
            found = runs.into_iter().map(|(_, listed)| listed).collect();
        }
    }
    let total = found.len();
    let page: Vec<ListedRun> = found.into_iter().skip(query.offset).take(limit).collect();
    Ok(Runs { runs: lines(state, tenant, page).await?, total, truncated })
}

/// Returns a page of all runs, newest first, like [`look`]; runs on other pages are only counted.
async fn newest(state: &AppState, tenant: &TenantId, limit: usize, offset: usize) -> Result<Runs, ApiError> {
    let total = state.scheduler.count_newest_runs(tenant, LOOKED_AT).await?;
    let left = total.saturating_sub(offset as u64).min(limit as u64);
    let page = match u32::try_from(left).unwrap_or(u32::MAX) {
        0 => Vec::new(),
        limit => state.scheduler.newest_runs(tenant, Page { limit, offset: offset as u64 }).await?,
    };
    let runs = lines(state, tenant, page).await?;
    Ok(Runs { runs, total: total as usize, truncated: total >= u64::from(LOOKED_AT) })
}

async fn progress_of(state: &AppState, tenant: &TenantId, runs: &[ListedRun]) -> Result<Vec<RunProgress>, ApiError> {
    let ids: Vec<RunId> = runs.iter().map(|listed| listed.run.id.clone()).collect();
    Ok(state.scheduler.progress_of_runs(tenant, &ids).await?)
}

/// Returns the number to sort by; runs without a loss come last.
fn or_last(loss: Option<f64>) -> f64 {
    loss.unwrap_or(f64::INFINITY)
}

async fn lines(state: &AppState, tenant: &TenantId, page: Vec<ListedRun>) -> Result<Vec<RunLine>, ApiError> {
    let progress = progress_of(state, tenant, &page).await?;
    Ok(page.into_iter().zip(progress).map(|(listed, progress)| line(listed, &progress)).collect())
}

/// Returns a run's state, as far as it matters to a reader.
pub(super) fn state_of(listed: &ListedRun) -> &'static str {
    match listed.run.state {
        trainyard_scheduler::RunState::Creating => "creating",
        trainyard_scheduler::RunState::Failed => "failed",
        trainyard_scheduler::RunState::Ready if listed.active => "active",
        trainyard_scheduler::RunState::Ready => "ended",
    }
}

/// Returns the name that a run's metadata gives it.
pub(super) fn name_of(user_metadata: &BTreeMap<String, String>) -> Option<String> {
    user_metadata.get("name").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn contains(listed: &ListedRun, word: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(word);
    let named = |name: &str, text: &str| word.strip_prefix(name).is_some_and(|rest| text.to_lowercase().contains(rest));
    has(listed.run.id.as_str())
        || has(&listed.run.spec.base_model)
        || listed.project.as_deref().is_some_and(|project| has(project) || named("project=", project))
        || listed.tags.iter().any(|tag| has(tag) || named("tag=", tag))
        || listed.run.user_metadata.iter().any(|(key, value)| has(&format!("{key}={value}")))
}

fn line(listed: ListedRun, progress: &RunProgress) -> RunLine {
    let state = state_of(&listed);
    let ListedRun { run, project, tags, .. } = listed;
    RunLine {
        run_id: run.id.to_string(),
        base_model: run.spec.base_model,
        lora_rank: run.spec.lora.map(|lora| lora.rank),
        state,
        project,
        tags,
        name: name_of(&run.user_metadata),
        user_metadata: run.user_metadata,
        created: rfc3339(run.created_at.as_millis()),
        last_request: rfc3339(run.last_request_at.as_millis()),
        steps: progress.steps,
        loss: progress.loss,
        loss_per_token: progress.loss_per_token,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::BTreeMap;

    use axum::body::Body;
    use axum::http::Method;
    use serde_json::{Value, json};
    use trainyard_scheduler::{Encoding, LOSS_PER_TOKEN, Measured, Outcome};

    use crate::api::tests::testing::*;

    async fn find(server: &Server, query: &str) -> Value {
        server.call(Method::GET, &format!("/console/data/runs?{query}"), &[], Body::empty()).await.json()
    }

    fn ids(found: &Value) -> Vec<&str> {
        found["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect()
    }

    /// A run of a session with so many optimizer steps; the loss of its last pass.
    async fn trained(server: &Server, tag: &str, steps: i64, loss: f64) -> String {
        let body = json!({"tags": [tag], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session"});
        let session = server.post("create_session", body).await.text("session_id");
        let body = json!({
            "session_id": session, "model_seq_id": 0, "base_model": MODEL,
            "user_metadata": {"sweep": tag, "name": format!("{tag} run ")},
            "lora_config": {"rank": 8}, "optimizer_config": {"type": "adamw"}, "type": "create_model",
        });
        let created = server.post("create_model", body).await;
        let (run, id) = (created.text("model_id"), created.text("request_id"));
        let work = server.next_work().await;
        server.succeed(&work, &json!({"model_id": run}), vec![]);
        // It is active once its creation is stored.
        server.poll(&id).await;
        for step in 0..steps {
            // The run with the larger sum has the smaller loss per token.
            let losses = BTreeMap::from([("loss:sum".to_owned(), loss), (LOSS_PER_TOKEN.to_owned(), 1.0 / loss)]);
            for (call, body, metrics) in [
                ("forward_backward", backward(&run, 2 * step + 1), losses),
                ("optim_step", adam(&run, 2 * step + 2, 1e-4), BTreeMap::from([("norm".to_owned(), 1.0)])),
            ] {
                let id = server.post(call, body).await.text("request_id");
                let work = server.next_work().await;
                let measured = Measured { metrics: Some(metrics), ..Measured::default() };
                let outcome = || Outcome::Succeeded { encoding: Encoding::Json, payload: "{}".into() };
                server.state.scheduler.complete_encoded_by(work.request, measured, Box::new(outcome));
                server.poll(&id).await;
            }
        }
        server.clock.advance(1);
        run
    }

    #[tokio::test]
    async fn runs_are_filtered_and_ordered() {
        let server = Server::start().await;
        let (a, b, c) = (
            trained(&server, "first", 1, 3.5).await,
            trained(&server, "second", 2, 1.5).await,
            trained(&server, "third", 0, 0.0).await,
        );
        let newest = find(&server, "").await;
        assert_eq!(
            (ids(&newest), &newest["total"], &newest["truncated"]),
            (vec![&*c, &*b, &*a], &json!(3), &json!(false))
        );
        assert_eq!(newest["runs"][1]["steps"], 2);
        assert_eq!(
            (&newest["runs"][1]["loss"], &newest["runs"][1]["loss_per_token"]),
            (&json!(1.5), &json!(1.0 / 1.5))
        );
        assert_eq!(newest["runs"][1]["name"], "second run");
        assert_eq!(newest["runs"][2], find(&server, "q=first").await["runs"][0]);
        assert_eq!((&newest["runs"][0]["steps"], &newest["runs"][0]["loss"]), (&json!(0), &Value::Null));
        // Pages of the plain list, and of a filtered one.
        for query in ["limit=1&offset=1", "limit=1&offset=1&state=active"] {
            let page = find(&server, query).await;
            assert_eq!((ids(&page), &page["total"]), (vec![&*b], &json!(3)), "{query}");
        }
        assert_eq!(ids(&find(&server, "offset=3").await), Vec::<&str>::new());
        for (query, expected) in [
            ("sort=steps", vec![&*b, &*a, &*c]),
            ("sort=loss", vec![&*b, &*a, &*c]),
            ("sort=loss_per_token", vec![&*a, &*b, &*c]),
            ("q=name%3Dthird", vec![&*c]),
            ("sort=loss&offset=1&limit=1", vec![&*a]),
            ("sort=last_request", vec![&*c, &*b, &*a]),
            ("q=tag%3Dsecond", vec![&*b]),
            ("q=sweep%3Dthird", vec![&*c]),
            ("q=SECOND+tiny", vec![&*b]),
            ("q=project%3Dfirst", vec![]),
            // Names of fields are not searched.
            ("q=tag", vec![]),
            ("state=failed", vec![]),
        ] {
            assert_eq!(ids(&find(&server, query).await), expected, "{query}");
        }
        for query in ["sort=size", "state=lost", "limit=0", "limit=201"] {
            let path = format!("/console/data/runs?{query}");
            server.call(Method::GET, &path, &[], Body::empty()).await.refused(400);
        }
    }
}
