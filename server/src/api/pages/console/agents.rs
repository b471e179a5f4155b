//! Agent sessions on pages: the newest ones, and one turn by turn with its tokens and which of them are trained.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{AgentSessionId, TenantId};
use trainyard_scheduler::{AgentSession, AgentTurn, Page};
use trainyard_wire::agents::AgentSessionResponse;
use trainyard_wire::timestamp::rfc3339;

use crate::api::agents::response;
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::error::ApiError;
use crate::inference::agents::Content;
use crate::inference::agents::trajectories::{Branch, branches};
use crate::inference::{ModelText, pieces};
use crate::state::AppState;

/// Sessions of one page of the list.
const LISTED: u32 = 50;
/// Tokens of one page of turns, at least one turn.
const TOKENS: usize = 16_384;
/// Tokens of a prompt that are shown, from its end, and of a reply, from its beginning.
const SHOWN: usize = 4_096;
/// The value that stands for the logarithm of zero in JSON.
const LEAST: f64 = -9_999.0;

/// A page of the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Sessions {
    agent_sessions: Vec<AgentSessionResponse>,
    /// Whether older sessions follow.
    more: bool,
}

/// A session with its branches, and a page of the turns of one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Session {
    session: AgentSessionResponse,
    branches: Vec<BranchLine>,
    turns: Vec<TurnLine>,
    /// Position of the branch's next turn.
    next: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct BranchLine {
    /// Id of the last turn.
    branch: String,
    turns: usize,
    /// Number of its turns that an earlier branch trains.
    shared: usize,
    tokens: usize,
    /// Why its first turn continues no other.
    reason: Option<String>,
    reward: Option<f64>,
    truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct TurnLine {
    turn_id: String,
    time: String,
    /// Whether the branch trains the sampled tokens.
    trained: bool,
    finish_reason: String,
    weights: String,
    temperature: f64,
    reward: Option<f64>,
    /// Tokens behind those of the turn before.
    prompt: Tokens,
    sampled: Tokens,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Tokens {
    /// Number of all tokens, some of which follow.
    count: usize,
    ids: Vec<u32>,
    /// Text of each token, if the model has a tokenizer on this server.
    texts: Option<Vec<String>>,
    /// Log-probabilities of sampled tokens.
    logprobs: Vec<f64>,
}

/// Query parameters of a session: which branch, and its first turn that is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionQuery {
    /// Position among the branches.
    branch: usize,
    from: usize,
}

/// Returns the caller's newest sessions from a position on.
pub(super) async fn list(state: &AppState, tenant: &TenantId, offset: usize) -> Result<Sessions, ApiError> {
    let page = Page { limit: LISTED + 1, offset: offset as u64 };
    let mut found = state.scheduler.agent_sessions(tenant, page).await?;
    let more = found.len() > LISTED as usize;
    found.truncate(LISTED as usize);
    Ok(Sessions { agent_sessions: found.into_iter().map(response).collect(), more })
}

/// Returns one of the caller's sessions without its turns.
pub(super) async fn summary(
    state: &AppState,
    tenant: &TenantId,
    id: &AgentSessionId,
) -> Result<AgentSessionResponse, ApiError> {
    Ok(response(state.scheduler.agent_session(tenant, id).await?))
}

/// Returns one of the caller's sessions with turns of one of its branches.
pub(super) async fn session(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    ApiPath(agent_session_id): ApiPath<String>,
    ApiQuery(query): ApiQuery<SessionQuery>,
) -> Reply<Session> {
    let id = AgentSessionId::new(agent_session_id);
    let session = state.scheduler.agent_session(&tenant, &id).await?;
    let turns = state.scheduler.agent_turns(&tenant, &id).await?;
    // Without a tokenizer the page shows numbers.
    let text = state.inference.texts.get(state.models.hub(), &session.base_model).await.ok();
    let work = move || shown(session, &turns, &query, text.as_ref());
    Ok(Answer(state.inference.texts.work(work).await??))
}

fn shown(
    session: AgentSession,
    turns: &[AgentTurn],
    query: &SessionQuery,
    text: Option<&Arc<ModelText>>,
) -> Result<Session, ApiError> {
    let (mut lines, mut page) = (Vec::new(), (Vec::new(), None));
    for (index, branch) in branches(turns).enumerate() {
        lines.push(branch_line(&session, &branch));
        if index == query.branch {
            page = turn_lines(&branch, query.from, text)?;
        }
    }
    let (turns, next) = page;
    Ok(Session { session: response(session), branches: lines, turns, next })
}

fn branch_line(session: &AgentSession, branch: &Branch<'_>) -> BranchLine {
    BranchLine {
        branch: branch.id(),
        turns: branch.path.len(),
        shared: branch.path.iter().filter(|found| !branch.trains(found)).count(),
        tokens: branch.tokens(),
        reason: branch.path.first().and_then(|found| found.turn.branch_reason.clone()),
        reward: branch.reward(session),
        truncated: branch.is_truncated(),
    }
}

/// Returns the turns of a branch from a position on, and the position behind them.
fn turn_lines(
    branch: &Branch<'_>,
    from: usize,
    text: Option<&Arc<ModelText>>,
) -> Result<(Vec<TurnLine>, Option<usize>), ApiError> {
    let (mut lines, mut tokens) = (Vec::new(), 0);
    for (index, found) in branch.path.iter().enumerate().skip(from) {
        let line = turn_line(found, branch.trains(found), text)?;
        tokens += line.prompt.ids.len() + line.sampled.ids.len();
        if tokens > TOKENS && !lines.is_empty() {
            return Ok((lines, Some(index)));
        }
        lines.push(line);
    }
    Ok((lines, None))
}

fn turn_line(found: &AgentTurn, trained: bool, text: Option<&Arc<ModelText>>) -> Result<TurnLine, ApiError> {
    let Content { temperature, .. } = Content::of(found)?;
    let (prompt, sampled) = (&found.turn.prompt, &found.turn.sampled);
    let end = prompt.get(prompt.len().saturating_sub(SHOWN)..).unwrap_or_default();
    let beginning = sampled.get(..sampled.len().min(SHOWN)).unwrap_or_default();
    let logprobs = found.turn.logprobs.iter().take(beginning.len());
    Ok(TurnLine {
        turn_id: found.id(),
        time: rfc3339(found.created_at.as_millis()),
        trained,
        finish_reason: found.turn.finish_reason.clone(),
        weights: found.turn.weights.clone(),
        temperature,
        reward: found.reward,
        prompt: tokens(prompt.len(), end, Vec::new(), text),
        sampled: tokens(sampled.len(), beginning, logprobs.map(|&each| f64::from(each).max(LEAST)).collect(), text),
    })
}

fn tokens(count: usize, ids: &[u32], logprobs: Vec<f64>, text: Option<&Arc<ModelText>>) -> Tokens {
    Tokens { count, ids: ids.to_vec(), texts: text.map(|text| pieces(text, ids)), logprobs }
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
