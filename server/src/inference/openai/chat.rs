//! `POST chat/completions`: from its body to a sample, and the whole answer.

use std::sync::Arc;

use trainyard_chat::openai::chat::{check_unsupported, conversation, settings};
use trainyard_chat::openai::chat_reply::{TokenDetails, add, empty};
use trainyard_chat::texts::ModelText;
use trainyard_protocol::TenantId;
use trainyard_wire::openai::{ChatChoice, ChatRequest, ChatResponse};

use super::super::agents::{Agent, Chat};
use super::super::completion::Completion;
use super::super::sampler::Sampler;
use super::super::sse;
use super::chat_stream::ChatStream;
use super::{Answered, Head, usage};
use crate::error::ApiError;
use crate::state::AppState;

/// Answers a conversation.
///
/// # Errors
/// Fails if the request is wrong or can't be taken now.
pub(crate) async fn chat(
    state: &AppState,
    tenant: &TenantId,
    agent: Option<&Agent>,
    request: ChatRequest,
) -> Result<Answered<ChatResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let sampler = Sampler::find(state, tenant, agent, &request.model).await?;
    let text = Arc::clone(sampler.text());
    let conversation = conversation(&request, text.template()?)?;
    let details = TokenDetails::of(&settings);
    let completion = sampler.reply(Chat { conversation, prefill: None }, settings).await?;
    let head = Head::new(state, "chatcmpl", completion.id(), request.model);
    if request.stream {
        let include_usage = request.stream_options.is_some_and(|options| options.include_usage);
        return Ok(Answered::Stream(sse::respond(ChatStream::new(head, completion, text, details, include_usage))));
    }
    reply(head, completion, &text, details).await.map(|response| Answered::Whole(Box::new(response)))
}

/// Waits for the completions' end.
async fn reply(
    head: Head,
    mut completion: Completion,
    text: &ModelText,
    details: TokenDetails,
) -> Result<ChatResponse, ApiError> {
    let updates = completion.rest().await?;
    let mut choices: Vec<ChatChoice> = (0..completion.count()).map(|index| empty(index, details)).collect();
    for (index, piece) in updates {
        if let Some(choice) = choices.get_mut(index) {
            add(choice, piece, &head.id, text, details);
        }
    }
    let usage = usage(std::iter::once(&completion));
    let Head { id, created, model } = head;
    let prompt_token_ids = details.ids.then_some(completion.prompt);
    Ok(ChatResponse { id, object: "chat.completion".to_owned(), created, model, choices, usage, prompt_token_ids })
}
