//! Handler of `POST chat/completions` of the OpenAI API.

use axum::extract::State;
use axum::response::Response;
use trainyard_wire::openai::{ChatRequest, ChatResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::{OpenAiRefusals, ServerSentEvent};
use crate::api::request::respond::whole_or_stream;
use crate::auth::{Caller, Tenant};
use crate::error::ApiError;
use crate::inference::agents::Agent;
use crate::inference::openai;
use crate::state::AppState;

/// Answers a conversation, rendered with the model's own chat template. With `stream`, the response is a stream of
/// server-sent events: a `chat.completion.chunk` each, and `[DONE]` at the end.
///
/// Also served at `/v1/chat/completions`.
#[utoipa::path(
    post, path = "/oai/api/v1/chat/completions", tag = "openai", request_body = ChatRequest,
    responses(
        (status = 200, description = "the replies, whole or in chunks",
            content((ChatResponse = "application/json"), (ServerSentEvent = "text/event-stream"))),
        OpenAiRefusals,
    ),
)]
pub(in crate::api) async fn oai_chat_completions(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<ChatRequest>,
) -> Result<Response, ApiError> {
    let agent = Agent::of(&caller);
    let answered = openai::chat(&state, &tenant, agent.as_ref(), request).await?;
    Ok(whole_or_stream(agent.as_ref(), answered))
}
