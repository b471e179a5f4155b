//! A session at the beginning of a request: the prompt that its recorded turns give, and its limits.

use std::sync::Arc;

use trainyard_chat::continuation::{Branch, Recorded, continuation};
use trainyard_chat::conversation::Rendered;
use trainyard_chat::history::History;
use trainyard_chat::settings::Settings;
use trainyard_chat::template::Conversation;
use trainyard_chat::texts::ModelText;
use trainyard_protocol::TenantId;
use trainyard_scheduler::budgets::AGENT_TOKENS;
use trainyard_scheduler::{AgentMatch, AgentSession, AgentState, AgentTurn};

use super::super::conversation::{now, render};
use super::super::model_name::is_sampler;
use super::agent::{Agent, Start};
use super::ledger::Amount;
use super::turn::{Content, Turn};
use crate::error::ApiError;
use crate::state::AppState;

/// A conversation to reply to.
pub(crate) struct Chat {
    pub(crate) conversation: Conversation,
    /// The assistant's last message, which the model continues.
    pub(crate) prefill: Option<String>,
}

/// A session with its state at the beginning of a request.
pub(crate) struct Open<'a> {
    agent: &'a Agent,
    state: &'a AppState,
    tenant: &'a TenantId,
    session: AgentSession,
}

/// Reads the session of a request, if it has a session's key.
///
/// # Errors
/// Fails if the session is over, or the tenant's storage quota is used up.
pub(crate) async fn open<'a>(
    agent: Option<&'a Agent>,
    state: &'a AppState,
    tenant: &'a TenantId,
) -> Result<Option<Open<'a>>, ApiError> {
    let Some(agent) = agent else { return Ok(None) };
    let session = state.scheduler.agent_session(tenant, agent.id()).await?;
    if session.state != AgentState::Open {
        return Err(ApiError::Gone(format!("agent session {} has ended", agent.id())));
    }
    state.scheduler.admit_agent_turn(tenant).await?;
    Ok(Some(Open { agent, state, tenant, session }))
}

impl Open<'_> {
    /// The name of the weights from which the session samples, whatever a request names.
    pub(crate) fn model(&self) -> String {
        match &self.session.model_path {
            Some(sampler) if is_sampler(sampler) => sampler.clone(),
            Some(path) => format!("{};{path}", self.session.base_model),
            None => self.session.base_model.clone(),
        }
    }

    /// Renders a conversation behind the recorded tokens that it continues.
    ///
    /// # Errors
    /// Fails if the template does not accept the conversation, or it has more tools than the session allows.
    pub(crate) async fn render(&self, text: &Arc<ModelText>, chat: Chat) -> Result<(Rendered, Turn), ApiError> {
        self.check(&chat.conversation)?;
        let Chat { conversation, prefill } = chat;
        let (whole, is_prefilled) = (conversation.clone(), prefill.is_some());
        let Histories { history, with_prefill } =
            self.state.inference.texts.work(move || Histories::of(whole, is_prefilled)).await?;
        if let Some(with_prefill) = with_prefill
            && let Some(resumed) = self.resume(&with_prefill, &history, prefill.as_deref()).await?
        {
            return Ok(resumed);
        }
        let branch = match self.path(&history).await? {
            None => (self.session.turns > 0).then_some(Branch::HistoryDiffers),
            Some(path) => match self.continued(text, &conversation, prefill.as_deref(), &path).await? {
                Ok(Continuing { rendered, delta }) => {
                    let turn = self.turn(path.last(), None, delta).of_chat(history, prefill, &rendered);
                    return Ok((rendered, turn));
                }
                Err(branch) => Some(branch),
            },
        };
        let rules = self.state.image_rules(&self.session.base_model);
        let rendered = render(self.state, text, conversation, prefill.clone(), rules).await?;
        let turn = self.turn(None, branch, rendered.tokens.clone()).of_chat(history, prefill, &rendered);
        Ok((rendered, turn))
    }

    /// Begins a turn without messages.
    pub(crate) fn text(&self, tokens: Vec<u32>) -> Turn {
        self.turn(None, (self.session.turns > 0).then_some(Branch::NoMessages), tokens)
    }

    fn turn(&self, parent: Option<&AgentTurn>, branch: Option<Branch>, delta: Vec<u32>) -> Turn {
        self.agent.begins(if parent.is_some() { Start::Continued } else { Start::New(branch) });
        let weights = self.session.model_path.as_ref().unwrap_or(&self.session.base_model).clone();
        let (scheduler, tenant) = (self.state.scheduler.clone(), self.tenant.clone());
        Turn::new(scheduler, tenant, self.agent.id().clone(), weights).after(parent, branch, delta)
    }

    fn check(&self, conversation: &Conversation) -> Result<(), ApiError> {
        if !conversation.images.is_empty() {
            return Err(ApiError::invalid("messages: images are not supported in agent sessions"));
        }
        match self.session.limits.max_tools {
            Some(most) if conversation.tools.len() as u64 > most => {
                let found = conversation.tools.len();
                let text =
                    format!("tools: {found} tools, at most {most} are allowed by limits.max_tools of the session");
                Err(ApiError::NotAllowed(text))
            }
            _ => Ok(()),
        }
    }

    /// The recorded turns that a history ends with, or continues.
    async fn path(&self, history: &History) -> Result<Option<Vec<AgentTurn>>, ApiError> {
        let digests: Vec<String> = history.replies().map(|reply| reply.digest.clone()).collect();
        if self.session.turns == 0 || digests.is_empty() {
            return Ok(None);
        }
        let id = self.agent.id();
        let matches = self.state.scheduler.agent_matches(self.tenant, id, digests).await?;
        let Some(number) = latest(history, &matches) else { return Ok(None) };
        Ok(Some(self.state.scheduler.agent_path(self.tenant, id, number).await?))
    }

    /// Continues a reply that was cut off, and that a request ends with.
    async fn resume(
        &self,
        whole: &History,
        history: &History,
        prefill: Option<&str>,
    ) -> Result<Option<(Rendered, Turn)>, ApiError> {
        let Some(path) = self.path(whole).await? else { return Ok(None) };
        let Some(last) = path.last() else { return Ok(None) };
        if last.turn.finish_reason != "length" || last.turn.messages != whole.messages() as u64 {
            return Ok(None);
        }
        let format = Content::of(last)?.format.resumed();
        let rendered = Rendered { tokens: tokens_of(&path), images: Vec::new(), format };
        let turn = self.turn(Some(last), None, Vec::new());
        let turn = turn.of_chat(history.clone(), prefill.map(str::to_owned), &rendered);
        Ok(Some((rendered, turn)))
    }

    async fn continued(
        &self,
        text: &Arc<ModelText>,
        conversation: &Conversation,
        prefill: Option<&str>,
        path: &[AgentTurn],
    ) -> Result<Result<Continuing, Branch>, ApiError> {
        let replies = path.iter().map(recorded).collect::<Result<Vec<_>, _>>()?;
        let (text, conversation, now) = (Arc::clone(text), conversation.clone(), now(self.state));
        let prefill = prefill.map(str::to_owned);
        let work = move || continuation(&text, &conversation, prefill.as_deref(), &replies, now);
        let continued = match self.state.inference.texts.work(work).await?? {
            Ok(continued) => continued,
            Err(branch) => return Ok(Err(branch)),
        };
        let mut tokens = tokens_of(path);
        tokens.extend(&continued.tokens);
        let rendered = Rendered { tokens, images: Vec::new(), format: continued.format };
        Ok(Ok(Continuing { rendered, delta: continued.tokens }))
    }

    /// Refuses a request that the session's limits leave no room for, and limits the length of its replies to the tokens
    /// that are left.
    ///
    /// # Errors
    /// [`ApiError::NotAllowed`] with the limit and what is used of it.
    pub(crate) async fn admit(
        &self,
        turn: &mut Turn,
        settings: &mut Settings,
        prompt: usize,
        context: usize,
    ) -> Result<(), ApiError> {
        let (id, replies) = (self.agent.id(), u64::from(settings.n));
        let refuse = |text: String| Err(ApiError::NotAllowed(format!("agent session {id}: {text}")));
        // Reserved before the session is read again, so that no turn is missed that another request records meanwhile.
        let mut reservation = self.state.inference.ledger.reserve(id, replies);
        let session = self.state.scheduler.agent_session(self.tenant, id).await?;
        let running = reservation.all().turns - replies;
        check_room(&session, running, Asked { replies, prompt_tokens: turn.prompt_tokens() }).or_else(refuse)?;
        let most = session.limits.max_tokens;
        let room = context.saturating_sub(prompt) as u64;
        let each = settings.max_tokens.map_or(room, u64::from);
        let free = |all: Amount| most.saturating_sub(session.tokens + all.tokens) / replies.max(1) * replies;
        let granted = reservation.take_tokens(each.saturating_mul(replies), free) / replies.max(1);
        if granted == 0 && each > 0 {
            let (used, running) = (session.tokens, reservation.all().tokens);
            return refuse(format!(
                "limits.max_tokens: {used} of {most} sampled tokens are used and {running} are reserved by running \
                 requests, and this request needs {replies} at least"
            ));
        }
        if granted < each {
            settings.max_tokens = Some(u32::try_from(granted).unwrap_or(u32::MAX));
        }
        turn.hold(reservation, settings.temperature);
        Ok(())
    }
}

/// What a request asks of its session.
#[derive(Clone, Copy)]
struct Asked {
    replies: u64,
    /// Tokens that each of its turns would hold of its prompt.
    prompt_tokens: u64,
}

/// Checks that a session has room for the turns of a request, beside those that are running.
///
/// # Errors
/// The limit, what is used of it, and what is asked.
fn check_room(session: &AgentSession, running: u64, asked: Asked) -> Result<(), String> {
    let (used, most) = (session.turns, session.limits.max_turns);
    if used + running + asked.replies > most {
        let replies = asked.replies;
        return Err(format!(
            "limits.max_turns: {used} of {most} turns are used and {running} are running, and this request asks for {replies}"
        ));
    }
    let held = session.prompt_tokens.saturating_add(asked.prompt_tokens.saturating_mul(asked.replies));
    if held > AGENT_TOKENS {
        return Err(format!("its turns would hold {held} tokens of prompts, at most {AGENT_TOKENS} are allowed"));
    }
    Ok(())
}

/// The messages that were said before the reply.
struct Histories {
    /// The messages without the assistant's last one, if the model continues it.
    history: History,
    /// The messages with that one.
    with_prefill: Option<History>,
}

impl Histories {
    fn of(mut conversation: Conversation, is_prefilled: bool) -> Self {
        let with_prefill = is_prefilled.then(|| History::of(&conversation));
        if is_prefilled {
            conversation.messages.pop();
        }
        Self { history: History::of(&conversation), with_prefill }
    }
}

/// A prompt behind recorded tokens.
struct Continuing {
    rendered: Rendered,
    /// The tokens that are not recorded.
    delta: Vec<u32>,
}

/// The latest turn that the longest beginning of a history ends with. A reply that names the calls of one turn is that
/// turn's.
fn latest(history: &History, matches: &[AgentMatch]) -> Option<u64> {
    history.replies().find_map(|reply| {
        let equal: Vec<&AgentMatch> = matches.iter().filter(|found| found.digest == reply.digest).collect();
        let names = |found: &&&AgentMatch| reply.call_id.as_deref().is_some_and(|id| is_call_of(id, found));
        equal.iter().rfind(names).or(equal.last()).map(|found| found.number)
    })
}

/// Returns whether a call's id is one that the replies of a turn have.
fn is_call_of(id: &str, turn: &AgentMatch) -> bool {
    let openai = format!("call_{}_{}_", turn.request, turn.choice);
    id.starts_with(&openai) || (turn.choice == 0 && id.starts_with(&format!("toolu_{}_", turn.request)))
}

fn tokens_of(path: &[AgentTurn]) -> Vec<u32> {
    path.iter().flat_map(|found| found.turn.prompt.iter().chain(&found.turn.sampled)).copied().collect()
}

fn recorded(found: &AgentTurn) -> Result<Recorded, ApiError> {
    let Content { said, format, .. } = Content::of(found)?;
    let messages = usize::try_from(found.turn.messages).unwrap_or(usize::MAX);
    Ok(Recorded { messages, said, format, last_token: found.turn.sampled.last().copied() })
}

#[cfg(test)]
mod tests {
    use trainyard_protocol::RequestId;

    use super::super::trajectories::tests::session;
    use super::*;

    #[test]
    fn turns_beyond_the_limits_are_refused_by_name() {
        let mut session = AgentSession { turns: 5, prompt_tokens: AGENT_TOKENS - 10, ..session(None) };
        session.limits.max_turns = 9;
        let ask = |running, replies, prompt_tokens| check_room(&session, running, Asked { replies, prompt_tokens });
        assert_eq!(ask(2, 2, 5), Ok(()));
        let text = "limits.max_turns: 5 of 9 turns are used and 3 are running, and this request asks for 2";
        assert_eq!(ask(3, 2, 5), Err(text.to_owned()));
        let text =
            format!("its turns would hold {} tokens of prompts, at most {AGENT_TOKENS} are allowed", AGENT_TOKENS + 2);
        assert_eq!(ask(2, 2, 6), Err(text));
    }

    #[test]
    fn the_ids_of_calls_tell_equal_replies_apart() {
        let turn = |choice| AgentMatch { number: 1, digest: String::new(), request: RequestId::new("r1"), choice };
        assert!(is_call_of("call_r1_0_0", &turn(0)) && is_call_of("toolu_r1_3", &turn(0)));
        assert!(!is_call_of("call_r1_1_0", &turn(0)) && !is_call_of("call_r12_0_0", &turn(0)));
        assert!(is_call_of("call_r1_12_0", &turn(12)) && !is_call_of("call_r1_12_0", &turn(1)));
    }
}
