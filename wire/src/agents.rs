//! Sessions of agents: their creation and listing, their trajectories and rewards.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::catalogue::number;
use super::json;
use super::training::DatumBody;

/// Request body of `POST agent_sessions`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAgentSessionRequest {
    /// Base model to sample from; by default, that of `model_path`.
    #[serde(default)]
    pub base_model: Option<String>,
    /// Sampler checkpoint to sample from, `tinker://…`.
    #[serde(default)]
    pub model_path: Option<String>,
    /// Sampling session whose weights are sampled, in place of `model_path`. One of an in-flight save follows its run:
    /// replies have the run's newest weights.
    #[serde(default)]
    pub sampling_session_id: Option<String>,
    /// Limits of the session.
    #[serde(default, deserialize_with = "json::or_default")]
    pub limits: AgentLimits,
}

/// Limits of an agent session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentLimits {
    /// Tokens that all turns together may sample; by default as many as possible.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4194304)]
    pub max_tokens: Option<u64>,
    /// Number of turns, 256 by default; each reply of a request is one.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4096)]
    pub max_turns: Option<u64>,
    /// Seconds until the session expires, 3600 by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 604800)]
    pub seconds: Option<u64>,
    /// Tools that a request may offer; any number by default.
    #[serde(default)]
    pub max_tools: Option<u64>,
}

/// Response body of `POST agent_sessions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateAgentSessionResponse {
    /// Id of the session.
    pub agent_session_id: String,
    /// Base URL for clients of the OpenAI API; it ends with `/v1`.
    pub base_url: String,
    /// Base URL for clients of the Anthropic API, which add `/v1` themselves.
    pub anthropic_base_url: String,
    /// Key of the session, which is returned only once; the server stores its SHA-256.
    pub api_key: String,
    /// Time from which the key is refused, in RFC 3339.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// An agent session with its limits and what is used of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentSessionResponse {
    /// Id of the session.
    pub agent_session_id: String,
    /// Base model of the weights.
    pub base_model: String,
    /// Sampler checkpoint from which the session samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_path: Option<String>,
    /// Sampling session whose weights are sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_session_id: Option<String>,
    /// `open`, `ended` (by a call) or `expired`.
    pub state: String,
    /// Limits of the session.
    pub limits: AgentLimits,
    /// Number of turns so far.
    pub turns: u64,
    /// Tokens sampled so far.
    pub tokens: u64,
    /// Reward of the whole session, if one was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// Time of creation, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time from which the key is refused, in RFC 3339.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// Response body of `GET agent_sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentSessionsResponse {
    /// Sessions of the page, newest first.
    pub agent_sessions: Vec<AgentSessionResponse>,
}

/// Query parameters of `GET agent_sessions/{id}/trajectories`.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TrajectoriesQuery {
    /// Maximum number of branches to return. A page with many tokens has fewer.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    #[serde(default = "most", deserialize_with = "number")]
    pub limit: u32,
    /// Number of branches to skip.
    #[serde(default, deserialize_with = "number")]
    pub offset: u64,
}

fn most() -> u32 {
    1_000
}

/// Response body of `GET agent_sessions/{id}/trajectories`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TrajectoriesResponse {
    /// Branches of the page, in the order of their last turns.
    pub trajectories: Vec<Trajectory>,
    /// `offset` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// A branch of an agent session: the turns from a first one to one that no other turn continues.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trajectory {
    /// Id of the branch's last turn.
    pub branch: String,
    /// Example for `forward_backward`. `weights` is 1 on the sampled tokens of turns whose `trained` is true, and
    /// `advantages` is the turn's reward there.
    pub datum: DatumBody,
    /// Reward of the branch, else of the session, if one was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// Whether the last reply was cut off by a limit on its length.
    pub truncated: bool,
    /// Turns of the branch, in order.
    pub turns: Vec<TrajectoryTurn>,
}

/// A turn of a branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrajectoryTurn {
    /// Id of the turn: that of its request, a dot, and the position among the request's replies.
    pub turn_id: String,
    /// Position of the first sampled token in the branch.
    pub start: u64,
    /// Number of sampled tokens.
    pub tokens: u64,
    /// Whether this branch trains the turn. A turn of several branches is trained in the first one.
    pub trained: bool,
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: String,
    /// Weights that sampled the turn: a base model, a sampler checkpoint or a sampling session.
    pub weights: String,
    /// Temperature at which the turn was sampled; its log-probabilities are those of that temperature.
    pub temperature: f64,
    /// Why the turn does not continue an earlier one, if the session had turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_reason: Option<String>,
    /// Reward of the turn, if one was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
}

/// Request body of `POST agent_sessions/{id}/rewards`. Without `turn_id` and `branch` it concerns the whole session.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRewardRequest {
    /// Id of the turn to reward.
    #[serde(default)]
    pub turn_id: Option<String>,
    /// Id of the last turn of the branch to reward.
    #[serde(default)]
    pub branch: Option<String>,
    /// Reward: a finite number, which replaces an earlier one.
    pub reward: f64,
}

/// Response body of `POST agent_sessions/{id}/rewards`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentRewardResponse {}
