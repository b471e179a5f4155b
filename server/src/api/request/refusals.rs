//! What endpoints answer, as the OpenAPI document describes it: refusals, binary bodies and streams.

use utoipa::{IntoResponses, ToSchema};

use trainyard_wire::anthropic::AnthropicErrorResponse;
use trainyard_wire::client::ErrorBody;
use trainyard_wire::openai;

/// A body that is no text.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct Binary(Vec<u8>);

/// One of the events that a stream consists of, in the order of their fields.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ServerSentEvent {
    /// Its type; absent in streams of the OpenAI API.
    #[schema(nullable = false)]
    event: Option<String>,
    /// JSON; at the end of a stream of the OpenAI API `[DONE]`.
    data: String,
}

/// What any endpoint may answer instead of its result; the document keeps for each operation what it can answer.
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
