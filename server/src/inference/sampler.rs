//! Resolves what a request of the compatible APIs samples from: weights with their tokenizer, in an agent session or
//! outside of one.

use std::sync::Arc;

use trainyard_chat::conversation::Rendered;
use trainyard_chat::output::OutputFormat;
use trainyard_chat::settings::Settings;
use trainyard_chat::texts::ModelText;
use trainyard_protocol::TenantId;

use super::agents::{self, Agent, Chat, Open, Turn};
use super::completion::{Completion, Prompt};
use super::conversation::render;
use super::model_name::{Target, resolve};
use crate::error::ApiError;
use crate::state::AppState;

/// The weights that a request samples from, for its tenant.
pub(crate) struct Sampler<'a> {
    state: &'a AppState,
    tenant: &'a TenantId,
    /// The agent session whose key the request has.
    session: Option<Open<'a>>,
    target: Target,
    text: Arc<ModelText>,
}

impl<'a> Sampler<'a> {
    /// Finds the weights of the request's agent session, or else those that the request names.
    ///
    /// # Errors
    /// Fails if the session is over, or if the tenant has no such model or the model has no tokenizer.
    pub(crate) async fn find(
        state: &'a AppState,
        tenant: &'a TenantId,
        agent: Option<&'a Agent>,
        model: &str,
    ) -> Result<Self, ApiError> {
        let session = agents::open(agent, state, tenant).await?;
        let target = match &session {
            Some(session) => resolve(state, tenant, &session.model()).await?,
            None => resolve(state, tenant, model).await?,
        };
        let text = state.inference.texts.get(state.models.hub(), &target.base.name).await?;
        Ok(Self { state, tenant, session, target, text })
    }

    pub(crate) fn text(&self) -> &Arc<ModelText> {
        &self.text
    }

    /// Maximum number of tokens of a prompt and its completion together.
    pub(crate) fn context(&self) -> usize {
        self.target.base.max_context_length
    }

    /// Renders a conversation and encodes it, without regard to recorded tokens.
    ///
    /// # Errors
    /// Fails if the template does not accept the conversation.
    pub(crate) async fn render(&self, chat: Chat) -> Result<Rendered, ApiError> {
        let rules = self.state.image_rules(&self.target.base.name);
        render(self.state, &self.text, chat.conversation, chat.prefill, rules).await
    }

    /// Submits a conversation for a reply, behind the recorded tokens that it continues if it belongs to an agent session.
    ///
    /// # Errors
    /// Fails if the template or the model does not accept the conversation, the session's limits leave no room for it, a
    /// queue is full or a quota is used up.
    pub(crate) async fn reply(&self, chat: Chat, mut settings: Settings) -> Result<Completion, ApiError> {
        let (rendered, turn) = match &self.session {
            None => (self.render(chat).await?, None),
            Some(session) => {
                let (rendered, turn) = session.render(&self.text, chat).await?;
                (rendered, Some(turn))
            }
        };
        let Rendered { tokens, images, format } = rendered;
        let format = settings.fit(format)?;
        let turn = self.admit(turn, &mut settings, tokens.len()).await?.map(|turn| turn.with_format(format));
        let prompt = Prompt { tokens, images, settings, format, is_chat: true, score_prompt: false, turn };
        self.start(prompt).await
    }

    /// Submits tokens that are not a conversation. `score_prompt` asks for their log-probabilities too.
    ///
    /// # Errors
    /// Fails if the model does not accept them, the session's limits leave no room for them, a queue is full or a quota is
    /// used up.
    pub(crate) async fn complete(
        &self,
        tokens: Vec<u32>,
        mut settings: Settings,
        score_prompt: bool,
    ) -> Result<Completion, ApiError> {
        let turn = self.session.as_ref().map(|session| session.text(tokens.clone()));
        let turn = self.admit(turn, &mut settings, tokens.len()).await?;
        let (images, format) = (Vec::new(), OutputFormat::default());
        self.start(Prompt { tokens, images, settings, format, is_chat: false, score_prompt, turn }).await
    }

    /// Reserves room for a turn in the session's limits, and limits the length of its replies to what is left.
    async fn admit(
        &self,
        mut turn: Option<Turn>,
        settings: &mut Settings,
        prompt: usize,
    ) -> Result<Option<Turn>, ApiError> {
        if let (Some(session), Some(turn)) = (&self.session, &mut turn) {
            session.admit(turn, settings, prompt, self.context()).await?;
        }
        Ok(turn)
    }

    async fn start(&self, prompt: Prompt) -> Result<Completion, ApiError> {
        Completion::start(self.state, self.tenant, &self.target, &self.text, prompt).await
    }
}
