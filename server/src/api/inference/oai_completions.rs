//! Handler of `POST completions` of the OpenAI API.

use axum::extract::State;
use axum::response::Response;
use trainyard_wire::openai::{CompletionRequest, CompletionResponse};

use crate::api::request::body::JsonBody;
use crate::api::request::refusals::{OpenAiRefusals, ServerSentEvent};
use crate::api::request::respond::whole_or_stream;
use crate::auth::{Caller, Tenant};
use crate::error::ApiError;
use crate::inference::agents::Agent;
use crate::inference::openai;
use crate::state::AppState;

/// Completes texts or tokens. With `stream`, the response is a stream of server-sent events that ends with `[DONE]`.
///
/// Also served at `/v1/completions`.
#[utoipa::path(
    post, path = "/oai/api/v1/completions", tag = "openai", request_body = CompletionRequest,
    responses(
        (status = 200, description = "the completions, whole or in chunks",
            content((CompletionResponse = "application/json"), (ServerSentEvent = "text/event-stream"))),
        OpenAiRefusals,
    ),
)]
pub(in crate::api) async fn oai_completions(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    Caller(caller): Caller,
    JsonBody(request): JsonBody<CompletionRequest>,
) -> Result<Response, ApiError> {
    let agent = Agent::of(&caller);
    let answered = openai::completions(&state, &tenant, agent.as_ref(), request).await?;
    Ok(whole_or_stream(agent.as_ref(), answered))
}
