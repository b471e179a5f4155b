//! `POST messages` and `POST messages/count_tokens`.

use std::sync::Arc;

use trainyard_chat::anthropic::messages::{check_unsupported, settings};
use trainyard_chat::anthropic::prompt::{Parts, conversation};
use trainyard_chat::anthropic::reply::{add, empty};
use trainyard_chat::conversation::Rendered;
use trainyard_chat::texts::ModelText;
use trainyard_protocol::TenantId;
use trainyard_wire::anthropic::{CountTokensRequest, CountTokensResponse, MessageResponse, MessagesRequest};

use super::super::completion::{Completion, Prompt};
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
    request: MessagesRequest,
) -> Result<Answered<MessageResponse>, ApiError> {
    check_unsupported(&request)?;
    let mut settings = settings(&request)?;
    let parts = Parts::from(&request);
    let (target, text, rendered) = prompt(state, tenant, &request.model, &parts).await?;
    let Rendered { tokens, images, format } = rendered;
    let format = settings.fit(format)?;
    let prompt = Prompt { tokens, images, settings, format, is_chat: true, score_prompt: false };
    let completion = Completion::start(state, tenant, &target, &text, prompt).await?;
    if request.stream {
        return Ok(Answered::Stream(sse::respond(MessageStream::new(target.name, completion)?)));
    }
    reply(target.name, completion).await.map(|response| Answered::Whole(Box::new(response)))
}

/// Counts the tokens of a conversation.
///
/// # Errors
/// Fails if the request is wrong.
pub(crate) async fn count_tokens(
    state: &AppState,
    tenant: &TenantId,
    request: CountTokensRequest,
) -> Result<CountTokensResponse, ApiError> {
    let parts = Parts::from(&request);
    let (_, _, rendered) = prompt(state, tenant, &request.model, &parts).await?;
    Ok(CountTokensResponse { input_tokens: rendered.tokens.len() as u64 })
}

async fn prompt(
    state: &AppState,
    tenant: &TenantId,
    model: &str,
    parts: &Parts<'_>,
) -> Result<(Target, Arc<ModelText>, Rendered), ApiError> {
    let target = resolve(state, tenant, model).await?;
    let text = state.inference.texts.get(state.models.hub(), &target.base.name).await?;
    let (conversation, prefill) = conversation(parts, text.template()?)?;
    let rules = state.image_rules(&target.base.name);
    let rendered = render(state, &text, conversation, prefill, rules).await?;
    Ok((target, text, rendered))
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
