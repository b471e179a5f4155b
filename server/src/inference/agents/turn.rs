//! Replies of a request on their way to the store.

use serde::{Deserialize, Serialize};
use trainyard_chat::continuation::Branch;
use trainyard_chat::conversation::Rendered;
use trainyard_chat::history::{History, Said};
use trainyard_chat::openai::finish_reason;
use trainyard_chat::output::OutputFormat;
use trainyard_chat::sequence::{End, Piece};
use trainyard_protocol::{AgentSessionId, RequestId, TenantId};
use trainyard_scheduler::{AgentTurn, NewAgentTurn, Scheduler};
use trainyard_wire::sampling::SampleOutput;

use super::ledger::Reservation;
use crate::error::ApiError;

/// What is stored of a reply besides its tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) said: Said,
    pub(crate) format: OutputFormat,
    pub(crate) temperature: f64,
}

impl Content {
    /// Reads the content of a recorded turn.
    ///
    /// # Errors
    /// Fails if another program wrote it.
    pub(crate) fn of(found: &AgentTurn) -> Result<Self, ApiError> {
        serde_json::from_str(&found.turn.content)
            .map_err(|error| ApiError::Internal(format!("turn {} can't be read: {error}", found.id())))
    }
}

/// The replies of a request in an agent session.
pub(crate) struct Turn {
    scheduler: Scheduler,
    tenant: TenantId,
    session: AgentSessionId,
    weights: String,
    parent: Option<u64>,
    branch: Option<Branch>,
    /// Tokens behind those of the parent.
    prompt: Vec<u32>,
    /// The conversation without the reply; `None` for texts.
    history: Option<History>,
    /// The beginning of the reply, which the client wrote.
    prefill: String,
    format: OutputFormat,
    temperature: f64,
    /// The replies so far.
    replies: Vec<(Said, Option<End>)>,
    _reservation: Option<Reservation>,
}

impl Turn {
    pub(super) fn new(scheduler: Scheduler, tenant: TenantId, session: AgentSessionId, weights: String) -> Self {
        Self {
            scheduler,
            tenant,
            session,
            weights,
            parent: None,
            branch: None,
            prompt: Vec::new(),
            history: None,
            prefill: String::new(),
            format: OutputFormat::default(),
            temperature: 1.0,
            replies: Vec::new(),
            _reservation: None,
        }
    }

    pub(super) fn after(self, parent: Option<&AgentTurn>, branch: Option<Branch>, prompt: Vec<u32>) -> Self {
        Self { parent: parent.map(|turn| turn.number), branch, prompt, ..self }
    }

    pub(super) fn of_chat(self, history: History, prefill: Option<String>, rendered: &Rendered) -> Self {
        Self { history: Some(history), prefill: prefill.unwrap_or_default(), format: rendered.format, ..self }
    }

    /// Keeps what is reserved of the session's limits.
    pub(super) fn hold(&mut self, reservation: Reservation, temperature: f64) {
        (self._reservation, self.temperature) = (Some(reservation), temperature);
    }

    /// Number of tokens that the turn holds of its prompt.
    pub(super) fn prompt_tokens(&self) -> u64 {
        self.prompt.len() as u64
    }

    /// Sets the parts that are looked for in the replies.
    pub(crate) fn with_format(self, format: OutputFormat) -> Self {
        Self { format, ..self }
    }

    /// Notes a piece of a reply.
    pub(crate) fn note(&mut self, index: usize, piece: &Piece) {
        if self.replies.len() <= index {
            self.replies.resize_with(index + 1, || (Said::default(), None));
        }
        let Some((said, end)) = self.replies.get_mut(index) else { return };
        match piece {
            Piece::Part(part) => said.add(part),
            Piece::Tokens(_) => {}
            Piece::End(ended) => *end = Some(ended.clone()),
        }
    }

    /// Records the replies of a request that has ended.
    ///
    /// # Errors
    /// Fails if the session was ended, or the store can't be written.
    pub(crate) async fn record(self, request: RequestId, output: SampleOutput) -> Result<(), ApiError> {
        let turns = self.turns(&request, output)?;
        Ok(self.scheduler.record_agent_turns(&self.tenant, &self.session, turns).await?)
    }

    fn turns(&self, request: &RequestId, output: SampleOutput) -> Result<Vec<NewAgentTurn>, ApiError> {
        let mut turns = Vec::with_capacity(output.sequences.len());
        for (index, sequence) in output.sequences.into_iter().enumerate() {
            let (mut said, end) = self.replies.get(index).cloned().unwrap_or_default();
            said.content.insert_str(0, &self.prefill);
            let digest = self.history.as_ref().map(|history| history.with_reply(&said)).unwrap_or_default();
            let messages = self.history.as_ref().map_or(0, |history| history.messages() as u64 + 1);
            let content = Content { said, format: self.format, temperature: self.temperature };
            let content = serde_json::to_string(&content)
                .map_err(|error| ApiError::Internal(format!("failed to write a turn: {error}")))?;
            turns.push(NewAgentTurn {
                request: request.clone(),
                choice: u32::try_from(index).unwrap_or(u32::MAX),
                parent: self.parent,
                branch_reason: self.branch.map(|branch| branch.as_str().to_owned()),
                digest,
                messages,
                weights: self.weights.clone(),
                finish_reason: end.as_ref().map_or("stop", finish_reason).to_owned(),
                content,
                prompt: self.prompt.clone(),
                sampled: sequence.tokens,
                logprobs: sequence.logprobs,
            });
        }
        Ok(turns)
    }
}
