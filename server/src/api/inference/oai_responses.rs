//! Handler of `POST responses` of the OpenAI API.

use axum::extract::State;
use axum::response::Response;
use trainyard_wire::openai::{ResponsesRequest, ResponsesResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::{OpenAiRefusals, ServerSentEvent};
use crate::api::request::respond::whole_or_stream;
use crate::auth::{Caller, Tenant};
use crate::error::ApiError;
use crate::inference::agents::Agent;
use crate::inference::openai;
use crate::state::AppState;

/// Answers a conversation of items, rendered with the model's own chat template. With `stream`, the response is a stream
/// of server-sent events from `response.created` to `response.completed` or `response.incomplete`. Responses are not
/// stored.
///
/// Also served at `/v1/responses`.
#[utoipa::path(
    post, path = "/oai/api/v1/responses", tag = "openai", request_body = ResponsesRequest,
    responses(
        (status = 200, description = "the reply, whole or in events",
            content((ResponsesResponse = "application/json"), (ServerSentEvent = "text/event-stream"))),
        OpenAiRefusals,
    ),
)]
pub(in crate::api) async fn oai_responses(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<ResponsesRequest>,
) -> Result<Response, ApiError> {
    let agent = Agent::of(&caller);
    let answered = openai::responses(&state, &tenant, agent.as_ref(), request).await?;
    Ok(whole_or_stream(agent.as_ref(), answered))
}
