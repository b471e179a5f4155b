//! Handler of `POST messages` of the Anthropic API.

use axum::extract::State;
use axum::response::Response;
use trainyard_wire::anthropic::{MessageResponse, MessagesRequest};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::{AnthropicRefusals, ServerSentEvent};
use crate::api::request::respond::whole_or_stream;
use crate::auth::{Caller, Tenant};
use crate::error::ApiError;
use crate::inference::agents::Agent;
use crate::inference::anthropic;
use crate::state::AppState;

/// Answers a conversation, rendered with the model's own chat template. With `stream`, the response is a stream of
/// server-sent events from `message_start` to `message_stop`.
///
/// Also served at `/v1/messages`.
#[utoipa::path(
    post, path = "/anthropic/api/v1/messages", tag = "anthropic", request_body = MessagesRequest,
    responses(
        (status = 200, description = "the reply, whole or in events",
            content((MessageResponse = "application/json"), (ServerSentEvent = "text/event-stream"))),
        AnthropicRefusals,
    ),
)]
pub(in crate::api) async fn anthropic_messages(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<MessagesRequest>,
) -> Result<Response, ApiError> {
    let agent = Agent::of(&caller);
    let answered = anthropic::messages(&state, &tenant, agent.as_ref(), request).await?;
    Ok(whole_or_stream(agent.as_ref(), answered))
}
