//! Sessions of agents and their turns.

use trainyard_protocol::{AgentSessionId, RequestId, TenantId};

use crate::Timestamp;

/// Limits of an agent session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Number of tokens that all turns together may sample.
    pub max_tokens: u64,
    /// Number of turns; each reply of a request is one.
    pub max_turns: u64,
    /// Tools that a request may offer; any number if `None`.
    pub max_tools: Option<u64>,
    /// Seconds from the session's creation to its end.
    pub seconds: u64,
}

/// An agent session to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAgentSession {
    /// SHA-256 of the session's key.
    pub key_digest: [u8; 32],
    /// Base model from which the session samples.
    pub base_model: String,
    /// Sampler checkpoint, or id of a sampling session, from which it samples, if not from the base model.
    pub model_path: Option<String>,
    /// Limits of the session.
    pub limits: AgentLimits,
}

/// A session whose key samples through the compatible APIs, and whose turns are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSession {
    /// Id of the session.
    pub id: AgentSessionId,
    /// Base model from which the session samples.
    pub base_model: String,
    /// Sampler checkpoint, or id of a sampling session, from which it samples, if not from the base model.
    pub model_path: Option<String>,
    /// Limits of the session.
    pub limits: AgentLimits,
    /// Number of turns so far.
    pub turns: u64,
    /// Tokens sampled so far.
    pub tokens: u64,
    /// Number of tokens of prompts that the turns hold; what turns share counts once.
    pub prompt_tokens: u64,
    /// Reward of the whole session, if one was posted.
    pub reward: Option<f64>,
    /// Time when the session was created.
    pub created_at: Timestamp,
    /// Time from which the key is refused.
    pub expires_at: Timestamp,
    /// State at the time of reading, by the database's clock.
    pub state: AgentState,
}

/// Whether an agent session accepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// The key is accepted.
    Open,
    /// A call ended the session.
    Ended,
    /// The time of the session is over.
    Expired,
}

/// The holder of an agent session's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentKey {
    /// Session that the key belongs to.
    pub session: AgentSessionId,
    /// Tenant that owns the session.
    pub tenant: TenantId,
    /// Time from which the key is refused.
    pub expires_at: Timestamp,
}

/// A sampled reply to record.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAgentTurn {
    /// Request that sampled the reply.
    pub request: RequestId,
    /// Position among the request's replies.
    pub choice: u32,
    /// Turn that the reply continues.
    pub parent: Option<u64>,
    /// Reason why the reply does not continue a turn, if the session had turns.
    pub branch_reason: Option<String>,
    /// Digest of the conversation with the reply; empty for texts.
    pub digest: String,
    /// Number of messages with the reply.
    pub messages: u64,
    /// Weights that sampled it: a base model or a `tinker://` path.
    pub weights: String,
    /// `stop`, `length` or `tool_calls`.
    pub finish_reason: String,
    /// The reply as it was returned and how it was sampled, as JSON.
    pub content: String,
    /// Tokens between the parent's last token and the reply; without a parent, the whole prompt.
    pub prompt: Vec<u32>,
    /// Sampled tokens with the one that ended the reply.
    pub sampled: Vec<u32>,
    /// Log-probabilities of the sampled tokens.
    pub logprobs: Vec<f32>,
}

impl NewAgentTurn {
    /// Returns the bytes that the turn takes in the store, apart from ids.
    pub fn size_bytes(&self) -> u64 {
        (4 * self.prompt.len() + 8 * self.sampled.len() + self.content.len()) as u64
    }
}

/// A turn that the store contains.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentTurn {
    /// Position in the session, from 1.
    pub number: u64,
    /// Content of the turn.
    pub turn: NewAgentTurn,
    /// Reward of the turn, if one was posted.
    pub reward: Option<f64>,
    /// Reward of the branch that ends with this turn, if one was posted.
    pub branch_reward: Option<f64>,
    /// Time when the turn was recorded.
    pub created_at: Timestamp,
}

impl AgentTurn {
    /// Returns the id under which clients know the turn: `<request>.<choice>`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.turn.request, self.turn.choice)
    }
}

/// A turn whose conversation, with the reply, has a digest that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMatch {
    /// Position of the turn in its session.
    pub number: u64,
    /// Digest of the conversation with the reply.
    pub digest: String,
    /// Request that sampled the reply.
    pub request: RequestId,
    /// Position among the request's replies.
    pub choice: u32,
}

/// Object that receives a reward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewarded {
    /// The session as a whole.
    Session,
    /// A turn, by its request and its choice.
    Turn(RequestId, u32),
    /// The branch that ends with a turn.
    Branch(RequestId, u32),
}
