//! `GET /console/data/events`: the content of a page as server-sent events, one for each change.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until};
use trainyard_protocol::{AgentSessionId, RunId};
use trainyard_scheduler::{MetricsRange, MetricsReader, MetricsWatch, SamplesWatch};
use trainyard_wire::run_metrics::MetricsLine;

use super::runs::RunsQuery;
use super::{agents, overview, requests, runs, samples};
use crate::api::catalogue::measured::line;
use crate::api::request::extract::ApiQuery;
use crate::auth::{Caller, Principal};
use crate::error::ApiError;
use crate::inference::sse::{EventSource, named, respond};
use crate::state::AppState;

/// Longest duration of a stream. Afterwards the browser opens another, and its session is checked again.
const LONGEST: Duration = Duration::from_secs(300);
/// Interval at which content without notifications is read while a page shows it.
const PERIOD: Duration = Duration::from_secs(2);
/// Pause between two events, so that metrics of a run that trains fast are sent together.
const PAUSE: Duration = Duration::from_millis(400);
/// Maximum number of rows in one event.
const ROWS: usize = 2_000;

/// Query parameters: one of the topics to follow.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventsQuery {
    /// `overview`, `runs`, `run`, `samples`, `agents` or `agent`.
    topic: String,
    run_id: String,
    agent_session_id: String,
    /// Number of agent sessions to skip.
    skip: usize,
    /// First step of a run whose metrics are sent.
    from_step: i64,
}

/// Follows the overview, a page of runs, a run, the samples of a run, a page of agent sessions, or one of these.
pub(super) async fn events(
    State(state): State<AppState>,
    Caller(caller): Caller,
    ApiQuery(query): ApiQuery<EventsQuery>,
    ApiQuery(filter): ApiQuery<RunsQuery>,
) -> Result<Response, ApiError> {
    let topic = match query.topic.as_str() {
        "overview" => Topic::Overview,
        "runs" => Topic::Runs(filter),
        "run" => {
            let run = RunId::new(query.run_id);
            let range = MetricsRange { steps: (query.from_step.max(0), i64::MAX), ..MetricsRange::ALL };
            let watch = state.scheduler.watch_metrics(&run);
            let reader = state.scheduler.run_metrics(&caller.tenant, &run, range).await?;
            Topic::Run(Box::new(FollowedRun {
                run,
                watch,
                reader,
                requests_due: Instant::now(),
                requests: String::new(),
            }))
        }
        "samples" => {
            let run = RunId::new(query.run_id);
            state.scheduler.run(&caller.tenant, &run).await?;
            Topic::Samples(FollowedSamples { watch: state.scheduler.watch_samples(&run), run, looked: false })
        }
        "agents" => Topic::Agents(query.skip),
        "agent" => {
            let id = AgentSessionId::new(query.agent_session_id);
            agents::summary(&state, &caller.tenant, &id).await?;
            Topic::Agent(id)
        }
        topic => {
            let expected = "overview, runs, run, samples, agents or agent";
            return Err(ApiError::invalid(format!("topic: expected {expected}, found {topic:?}")));
        }
    };
    let end = Instant::now() + LONGEST;
    Ok(respond(Events { state, caller, topic, end, due: Instant::now(), last: None }))
}

/// The content that a page follows.
struct Events {
    state: AppState,
    caller: Principal,
    topic: Topic,
    end: Instant,
    /// Time at which to look again.
    due: Instant,
    /// Content that was sent last.
    last: Option<String>,
}

enum Topic {
    Overview,
    Runs(RunsQuery),
    Run(Box<FollowedRun>),
    Samples(FollowedSamples),
    /// A page of agent sessions, which skips this many.
    Agents(usize),
    Agent(AgentSessionId),
}

struct FollowedRun {
    run: RunId,
    watch: MetricsWatch,
    reader: MetricsReader,
    requests_due: Instant,
    /// Newest requests, in the form in which they were last sent.
    requests: String,
}

struct FollowedSamples {
    run: RunId,
    watch: SamplesWatch,
    looked: bool,
}

impl EventSource for Events {
    const PING: &'static str = ": ping\n\n";

    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        let shutdown = self.state.shutdown.clone();
        let end = self.end;
        tokio::select! {
            events = self.changed() => events.map(Some),
            () = shutdown.requested() => Ok(None),
            () = sleep_until(end) => Ok(None),
        }
    }

    fn failure(error: &ApiError) -> String {
        named("failure", &serde_json::json!({"detail": error.to_string()})).unwrap_or_default()
    }
}

impl Events {
    /// Waits for a change and returns the event.
    async fn changed(&mut self) -> Result<String, ApiError> {
        loop {
            sleep_until(self.due).await;
            let (state, caller) = (&self.state, &self.caller);
            let event = match &mut self.topic {
                Topic::Overview => Some(named("overview", &overview::look(state, caller).await?)?),
                Topic::Runs(query) => Some(named("runs", &runs::look(state, &caller.tenant, query).await?)?),
                Topic::Run(followed) => followed.next(state, caller).await?,
                Topic::Samples(followed) => Some(followed.next(state, caller).await?),
                Topic::Agents(skip) => Some(named("agents", &agents::list(state, &caller.tenant, *skip).await?)?),
                Topic::Agent(id) => Some(named("agent", &agents::summary(state, &caller.tenant, id).await?)?),
            };
            let is_run = matches!(self.topic, Topic::Run(_));
            let is_notified = is_run || matches!(self.topic, Topic::Samples(_));
            self.due = Instant::now() + if is_notified { PAUSE } else { PERIOD };
            if event.is_some() && (is_run || event != self.last) {
                self.last.clone_from(&event);
                return event.ok_or_else(|| ApiError::Internal("an event was lost".to_owned()));
            }
        }
    }
}

/// The metrics in an event.
#[derive(Serialize)]
struct Rows<'a> {
    rows: &'a [MetricsLine],
}

impl FollowedSamples {
    /// Returns the current samples: at once the first time, then after each change.
    async fn next(&mut self, state: &AppState, caller: &Principal) -> Result<String, ApiError> {
        if self.looked {
            self.watch.changed().await;
            // Registered before the next read, so that nothing is missed.
            self.watch = state.scheduler.watch_samples(&self.run);
        }
        self.looked = true;
        named("samples", &samples::look(state, &caller.tenant, &self.run).await?)
    }
}

impl FollowedRun {
    /// Returns new metrics, or the newest requests if they changed; `None` when it is time to read again.
    async fn next(&mut self, state: &AppState, caller: &Principal) -> Result<Option<String>, ApiError> {
        let requests = match Instant::now() >= self.requests_due {
            true => Some(named("requests", &requests::look(state, &caller.tenant, &self.run).await?)?),
            false => None,
        };
        // The last wait of this function: what was read is sent, also when this is dropped and called again.
        let page = self.reader.page().await?;
        if page.is_empty() && requests.is_none() {
            tokio::select! {
                () = self.watch.recorded() => {}
                () = sleep(PERIOD) => {}
            }
            // Registered before the next read, so that nothing is missed.
            self.watch = state.scheduler.watch_metrics(&self.run);
            return Ok(None);
        }
        let mut events = String::new();
        if !page.is_empty() {
            let lines: Vec<MetricsLine> = page.into_iter().map(line).collect();
            for rows in lines.chunks(ROWS) {
                events.push_str(&named("metrics", &Rows { rows })?);
            }
        }
        if let Some(requests) = requests {
            self.requests_due = Instant::now() + PERIOD;
            if requests != self.requests {
                events.push_str(&requests);
                self.requests = requests;
            }
        }
        Ok((!events.is_empty()).then_some(events))
    }
}
