//! `POST messages` and `POST messages/count_tokens`.

use trainyard_chat::anthropic::messages::{check_unsupported, settings};
use trainyard_chat::anthropic::prompt::{Parts, conversation};
use trainyard_chat::anthropic::reply::{add, empty};
use trainyard_protocol::TenantId;
use trainyard_wire::anthropic::{CountTokensRequest, CountTokensResponse, MessageResponse, MessagesRequest};

use super::super::agents::{Agent, Chat};
use super::super::completion::Completion;
use super::super::sampler::Sampler;
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
    let sampler = Sampler::find(state, tenant, agent, &request.model).await?;
    let completion = sampler.reply(chat(&sampler, &Parts::from(&request))?, settings).await?;
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
    let sampler = Sampler::find(state, tenant, agent, &request.model).await?;
    let rendered = sampler.render(chat(&sampler, &Parts::from(&request))?).await?;
    Ok(CountTokensResponse { input_tokens: rendered.tokens.len() as u64 })
}

fn chat(sampler: &Sampler<'_>, parts: &Parts<'_>) -> Result<Chat, ApiError> {
    let (conversation, prefill) = conversation(parts, sampler.text().template()?)?;
    Ok(Chat { conversation, prefill })
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
