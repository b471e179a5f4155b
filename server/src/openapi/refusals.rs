//! What each operation may answer instead of its result.

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, Ref, RefOr, Response};

use super::examples;
use crate::inference::error_form;
use crate::wire::anthropic::AnthropicErrorResponse;
use crate::wire::client::ErrorBody;
use crate::wire::openai;

/// What any endpoint may answer instead of its result; [`share`] leaves each operation what it can answer.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum Refusals {
    /// A field is wrong; the text names it.
    #[response(status = 400)]
    Invalid(ErrorBody),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(ErrorBody),
    /// The API key does not allow it; the URL's signature is wrong or has expired; or a server without keys got what a
    /// proxy passed on.
    #[response(status = 403)]
    Forbidden(ErrorBody),
    /// There is no such thing.
    #[response(status = 404)]
    NotFound(ErrorBody),
    /// The body arrived too slowly; send it again.
    #[response(status = 408)]
    TooSlow(ErrorBody),
    /// It existed and is over.
    #[response(status = 410)]
    Gone(ErrorBody),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(ErrorBody),
    /// The content type or content encoding is not supported.
    #[response(status = 415)]
    UnsupportedMediaType(ErrorBody),
    /// The identity was used with other content.
    #[response(status = 422)]
    Mismatch(ErrorBody),
    /// A quota, a queue or a limit on connections is full; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(ErrorBody),
    /// The service is at fault.
    #[response(status = 500)]
    Internal(ErrorBody),
    /// The store is not available, a disk is full or the models are still loading; repeat the same request, after
    /// `Retry-After` seconds where that is given.
    #[response(status = 503)]
    Unavailable(ErrorBody),
}

/// What an endpoint of the OpenAI API may answer instead of its result, in that API's form.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum OpenAiRefusals {
    /// A field is wrong; the text names it.
    #[response(status = 400)]
    Invalid(openai::ErrorResponse),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(openai::ErrorResponse),
    /// The API key does not allow it, or a server without keys got what a proxy passed on.
    #[response(status = 403)]
    Forbidden(openai::ErrorResponse),
    /// There is no such model.
    #[response(status = 404)]
    NotFound(openai::ErrorResponse),
    /// The body arrived too slowly; send it again.
    #[response(status = 408)]
    TooSlow(openai::ErrorResponse),
    /// The request was cancelled.
    #[response(status = 410)]
    Gone(openai::ErrorResponse),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(openai::ErrorResponse),
    /// The content encoding is not supported.
    #[response(status = 415)]
    UnsupportedMediaType(openai::ErrorResponse),
    /// A quota or a queue is full; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(openai::ErrorResponse),
    /// The service is at fault.
    #[response(status = 500)]
    Internal(openai::ErrorResponse),
    /// The store is not available, a disk is full or no worker serves the model; repeat the same request.
    #[response(status = 503)]
    Unavailable(openai::ErrorResponse),
}

/// What an endpoint of the Anthropic API may answer instead of its result, in that API's form.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum AnthropicRefusals {
    /// A field is wrong; the text names it.
    #[response(status = 400)]
    Invalid(AnthropicErrorResponse),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(AnthropicErrorResponse),
    /// The API key does not allow it, or a server without keys got what a proxy passed on.
    #[response(status = 403)]
    Forbidden(AnthropicErrorResponse),
    /// There is no such model.
    #[response(status = 404)]
    NotFound(AnthropicErrorResponse),
    /// The body arrived too slowly; send it again.
    #[response(status = 408)]
    TooSlow(AnthropicErrorResponse),
    /// The request was cancelled.
    #[response(status = 410)]
    Gone(AnthropicErrorResponse),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(AnthropicErrorResponse),
    /// The content encoding is not supported.
    #[response(status = 415)]
    UnsupportedMediaType(AnthropicErrorResponse),
    /// A quota or a queue is full; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(AnthropicErrorResponse),
    /// The service is at fault.
    #[response(status = 500)]
    Internal(AnthropicErrorResponse),
    /// The store is not available, a disk is full or no worker serves the model; repeat the same request.
    #[response(status = 503)]
    Unavailable(AnthropicErrorResponse),
}

/// The names under which the refusals stand in the document, with an example of their texts.
const NAMES: [(StatusCode, &str, &str); 12] = [
    (StatusCode::BAD_REQUEST, "Invalid", "limit: 0 is outside 1 to 1000"),
    (StatusCode::UNAUTHORIZED, "Unauthorized", "the API key is not known to this server"),
    (StatusCode::FORBIDDEN, "Forbidden", "the API key does not allow this: it needs the scope sample"),
    (StatusCode::NOT_FOUND, "NotFound", "session \"0199c5a4-0000-7c1e-8f1a-2b3c4d5e6f70\" does not exist"),
    (StatusCode::REQUEST_TIMEOUT, "TooSlow", "the body arrived too slowly"),
    (StatusCode::GONE, "Gone", "the result was deleted"),
    (StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "the body is larger than 268435456 bytes"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", "content type text/xml is not supported"),
    (StatusCode::UNPROCESSABLE_ENTITY, "Mismatch", "seq_id 3 was submitted before with other content"),
    (StatusCode::TOO_MANY_REQUESTS, "Busy", "quota max_queued_tokens: 500000 of 500000 tokens are queued"),
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal", "internal error; the server's log has the details"),
    (StatusCode::SERVICE_UNAVAILABLE, "Unavailable", "the models are still loading"),
];
/// The text of [`NAMES`] where a model is asked.
const NO_MODEL: &str = "model \"no-such-model\" does not exist";

/// Operations that name nothing which may be absent, over or another's.
const NAMELESS: [&str; 16] = [
    "auth_token",
    "whoami",
    "own_key",
    "admin_organisations",
    "admin_create_organisation",
    "admin_rotate_signing",
    "sessions_search",
    "client_config",
    "client_dynamic_config",
    "get_server_capabilities",
    "telemetry",
    "create_session",
    "sessions",
    "training_runs",
    "checkpoints",
    "oai_models",
];
/// Operations on what may be over: sessions, runs, sampling sessions and results.
const ENDING: [&str; 19] = [
    "copy_weights",
    "join_sampling_session",
    "create_custom_loss",
    "session_heartbeat",
    "create_model",
    "forward_backward",
    "forward",
    "optim_step",
    "save_weights",
    "save_weights_for_sampler",
    "save_weights_external",
    "load_weights",
    "create_sampling_session",
    "asample",
    "retrieve_future",
    "retrieve_futures",
    "oai_completions",
    "oai_chat_completions",
    "anthropic_messages",
];
/// Operations that are identified by a number, whose repetition must have the same content.
const NUMBERED: [&str; 12] = [
    "create_custom_loss",
    "copy_weights",
    "create_model",
    "forward_backward",
    "forward",
    "optim_step",
    "save_weights",
    "save_weights_for_sampler",
    "save_weights_external",
    "load_weights",
    "create_sampling_session",
    "asample",
];

/// Whether an operation can answer with a status.
fn can_answer(operation: &Operation, status: &str) -> bool {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let body = operation.request_body.is_some();
    match status {
        "400" => body || operation.parameters.is_some(),
        "401" => !["download", "trace_download"].contains(&id),
        "404" => !NAMELESS.contains(&id),
        "408" | "413" | "415" => body,
        "410" => ENDING.contains(&id),
        "422" => NUMBERED.contains(&id),
        _ => true,
    }
}

/// How an API of its own writes an error.
type Form = fn(StatusCode, &str) -> Value;

/// How the errors of an operation are written, where it belongs to an API that has its own.
fn own_form(operation: &Operation) -> Option<Form> {
    let is = |name: &str| operation.tags.iter().flatten().any(|tag| tag == name);
    match (is("openai"), is("anthropic")) {
        (true, _) => Some(error_form::openai_value),
        (_, true) => Some(error_form::anthropic_value),
        _ => None,
    }
}

fn show(response: Option<&mut RefOr<Response>>, example: Value) {
    if let Some(RefOr::T(response)) = response {
        examples::show(response.content.get_mut(examples::JSON), example);
    }
}

/// Writes each refusal once, and refers to it from the operations that can answer so.
pub(super) fn share(document: &mut OpenApi) {
    for operation in super::operations(document) {
        for (status, name, text) in NAMES {
            let healthz = operation.operation_id.as_deref() == Some("healthz");
            if healthz || !operation.responses.responses.contains_key(status.as_str()) {
                continue;
            }
            if !can_answer(operation, status.as_str()) {
                operation.responses.responses.remove(status.as_str());
            } else if let Some(form) = own_form(operation) {
                let text = if status == StatusCode::NOT_FOUND { NO_MODEL } else { text };
                show(operation.responses.responses.get_mut(status.as_str()), form(status, text));
            } else {
                let shared = RefOr::Ref(Ref::from_response_name(name));
                operation.responses.responses.insert(status.as_str().to_owned(), shared);
            }
        }
    }
    let mut refusals = Refusals::responses();
    let components = document.components.get_or_insert_default();
    for (status, name, text) in NAMES {
        let mut response = refusals.remove(status.as_str());
        show(response.as_mut(), json!({ "detail": text }));
        components.responses.extend(response.map(|response| (name.to_owned(), response)));
    }
}
