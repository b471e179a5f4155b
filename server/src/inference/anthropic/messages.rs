//! `POST messages` and `POST messages/count_tokens`.

use std::sync::Arc;

use trainyard_protocol::TenantId;
use trainyard_wire::anthropic::{CountTokensRequest, CountTokensResponse, MessageResponse, MessagesRequest};

use super::super::completion::{Completion, Prompt};
use super::super::conversation::{Rendered, render};
use super::super::model_name::{Target, resolve};
use super::super::settings::{Settings, count, stop_strings, top_k, unsupported, within};
use super::super::sse::{self, Answered};
use super::super::texts::ModelText;
use super::prompt::{Parts, conversation};
use super::reply::reply;
use super::stream::MessageStream;
use crate::error::ApiError;
use crate::state::AppState;

/// Answers a conversation.
///
/// # Errors
/// When the request is wrong or can't be taken now.
pub(crate) async fn messages(
    state: &AppState,
    tenant: &TenantId,
    request: MessagesRequest,
) -> Result<Answered<MessageResponse>, ApiError> {
    check_unsupported(&request)?;
    let settings = settings(&request)?;
    let parts = Parts::from(&request);
    let (target, text, rendered) = prompt(state, tenant, &request.model, &parts).await?;
    let prompt =
        Prompt { tokens: rendered.tokens, settings, format: rendered.format, is_chat: true, score_prompt: false };
    let completion = Completion::start(state, tenant, &target, &text, prompt).await?;
    if request.stream {
        return Ok(Answered::Stream(sse::respond(MessageStream::new(target.name, completion)?)));
    }
    reply(target.name, completion).await.map(|response| Answered::Whole(Box::new(response)))
}

/// Counts the tokens of a conversation.
///
/// # Errors
/// When the request is wrong.
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
    let rendered = render(state, &text, conversation, prefill).await?;
    Ok((target, text, rendered))
}

fn settings(request: &MessagesRequest) -> Result<Settings, ApiError> {
    Ok(Settings {
        max_tokens: Some(count("max_tokens", request.max_tokens, 1, u32::MAX)?),
        temperature: within("temperature", request.temperature.unwrap_or(1.0), 0.0, 1.0)?,
        top_p: within("top_p", request.top_p.unwrap_or(1.0), 0.0, 1.0)?,
        top_k: top_k(request.top_k)?,
        stop: stop_strings("stop_sequences", request.stop_sequences.clone().unwrap_or_default())?,
        ..Settings::default()
    })
}

fn check_unsupported(request: &MessagesRequest) -> Result<(), ApiError> {
    let tier = request.service_tier.as_deref().is_some_and(|tier| !matches!(tier, "auto" | "standard_only"));
    let servers = request.mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty());
    unsupported("service_tier", tier, "there are no service tiers")?;
    unsupported("container", request.container.is_some(), "is not supported")?;
    unsupported("mcp_servers", servers, "is not supported")?;
    unsupported("context_management", request.context_management.is_some(), "is not supported")
}
