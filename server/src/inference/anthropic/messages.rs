//! `POST messages` and `POST messages/count_tokens`.

use std::sync::Arc;

use trainyard_chat::anthropic::messages::{check_unsupported, settings};
use trainyard_chat::anthropic::prompt::{Parts, conversation};
use trainyard_chat::anthropic::reply::{add, empty};
use trainyard_chat::texts::ModelText;
use trainyard_protocol::TenantId;
use trainyard_wire::anthropic::{CountTokensRequest, CountTokensResponse, MessageResponse, MessagesRequest};

use super::super::agents::{self, Agent, Chat, Open, chat_prompt};
use super::super::completion::Completion;
use super::super::conversation::render;
use super::super::model_name::{Target, resolve};
use super::super::sse::{self, Answered};
use super::stream::MessageStream;
use super::{message_id, usage};
use crate::error::ApiError;
use crate::state::AppState;

/// Answers a conversation.
///
/// # Errors
/// Fails if the request is wrong or can't be taken now.
pub(crate) async fn messages(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
    request: MessagesRequest,
) -> Result<Answered<MessageResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let session = agents::open(agent, state, tenant).await?;
    let model = session.as_ref().map_or(request.model.clone(), Open::model);
    let (target, text, chat) = chat(state, tenant, &model, &Parts::from(&request)).await?;
    let rules = state.image_rules(&target.base.name);
    let prompt = chat_prompt(state, &text, chat, rules, settings, session.as_ref(), &target).await?;
    let completion = Completion::start(state, tenant, &target, &text, prompt).await?;
    if request.stream {
        return Ok(Answered::Stream(sse::respond(MessageStream::new(request.model, completion)?)));
    }
    reply(request.model, completion).await.map(|response| Answered::Whole(Box::new(response)))
}

/// Counts the tokens of a conversation.
///
/// # Errors
/// Fails if the request is wrong.
pub(crate) async fn count_tokens(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
    request: CountTokensRequest,
) -> Result<CountTokensResponse, ApiError> {
    let session = agents::open(agent, state, tenant).await?;
    let model = session.as_ref().map_or(request.model.clone(), Open::model);
    let (target, text, chat) = chat(state, tenant, &model, &Parts::from(&request)).await?;
    let rules = state.image_rules(&target.base.name);
    let rendered = render(state, &text, chat.conversation, chat.prefill, rules).await?;
    Ok(CountTokensResponse { input_tokens: rendered.tokens.len() as u64 })
}

async fn chat(
    state: &AppState,
    tenant: &TenantId,
    model: &str,
    parts: &Parts<'_>,
) -> Result<(Target, Arc<ModelText>, Chat), ApiError> {
    let target = resolve(state, tenant, model).await?;
    let text = state.inference.texts.get(state.models.hub(), &target.base.name).await?;
    let (conversation, prefill) = conversation(parts, text.template()?)?;
    Ok((target, text, Chat { conversation, prefill }))
}

/// Waits for the completion's end.
async fn reply(model: String, mut completion: Completion) -> Result<MessageResponse, ApiError> {
    let updates = completion.rest().await?;
    let mut response = empty(message_id(completion.id()), model, usage(completion.tokens));
    let mut calls = 0;
    for (_, piece) in updates {
        add(&mut response, &mut calls, piece);
    }
    Ok(response)
}
