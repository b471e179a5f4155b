//! Responses of endpoints for the OpenAPI document: refusals, binary bodies and streams.

use utoipa::{IntoResponses, ToSchema};

use trainyard_wire::anthropic::AnthropicErrorResponse;
use trainyard_wire::client::ErrorBody;
use trainyard_wire::openai;

/// A body of bytes instead of text.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct Binary(Vec<u8>);

/// An event of a stream; its fields are in the order in which they are sent.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ServerSentEvent {
    /// Type of the event; absent in streams of the OpenAI API.
    #[schema(nullable = false)]
    event: Option<String>,
    /// Data of the event, in JSON. A stream of the OpenAI API ends with the data `[DONE]`.
    data: String,
}

/// Refusals that an endpoint may return instead of its result. The document lists for each operation those that it can
/// return.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum Refusals {
    /// A field is invalid; the message names it.
    #[response(status = 400)]
    Invalid(ErrorBody),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(ErrorBody),
    /// The API key does not allow the operation; the URL's signature is wrong or has expired; or a server without keys
    /// received a request through a proxy.
    #[response(status = 403)]
    Forbidden(ErrorBody),
    /// The object does not exist.
    #[response(status = 404)]
    NotFound(ErrorBody),
    /// The body arrived too slowly; send it again.
    #[response(status = 408)]
    TooSlow(ErrorBody),
    /// The object existed, but has ended or was deleted.
    #[response(status = 410)]
    Gone(ErrorBody),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(ErrorBody),
    /// The content type or content encoding is not supported.
    #[response(status = 415)]
    UnsupportedMediaType(ErrorBody),
    /// The identity was already used with other content.
    #[response(status = 422)]
    Mismatch(ErrorBody),
    /// A quota, a queue or a limit on connections is exhausted; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(ErrorBody),
    /// The service failed to execute the request.
    #[response(status = 500)]
    Internal(ErrorBody),
    /// The store is not available, a disk is full or the models are still loading; repeat the same request, after
    /// `Retry-After` seconds if the header is set.
    #[response(status = 503)]
    Unavailable(ErrorBody),
}

/// Refusals that an endpoint of the OpenAI API may return instead of its result, in that API's form.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum OpenAiRefusals {
    /// A field is invalid; the message names it.
    #[response(status = 400)]
    Invalid(openai::ErrorResponse),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(openai::ErrorResponse),
    /// The API key does not allow the operation, or a server without keys received a request through a proxy.
    #[response(status = 403)]
    Forbidden(openai::ErrorResponse),
    /// The model does not exist.
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
    /// A quota or a queue is exhausted; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(openai::ErrorResponse),
    /// The service failed to execute the request.
    #[response(status = 500)]
    Internal(openai::ErrorResponse),
    /// The store is not available, a disk is full or no worker serves the model; repeat the same request.
    #[response(status = 503)]
    Unavailable(openai::ErrorResponse),
}

/// Refusals that an endpoint of the Anthropic API may return instead of its result, in that API's form.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum AnthropicRefusals {
    /// A field is invalid; the message names it.
    #[response(status = 400)]
    Invalid(AnthropicErrorResponse),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(AnthropicErrorResponse),
    /// The API key does not allow the operation, or a server without keys received a request through a proxy.
    #[response(status = 403)]
    Forbidden(AnthropicErrorResponse),
    /// The model does not exist.
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
    /// A quota or a queue is exhausted; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(AnthropicErrorResponse),
    /// The service failed to execute the request.
    #[response(status = 500)]
    Internal(AnthropicErrorResponse),
    /// The store is not available, a disk is full or no worker serves the model; repeat the same request.
    #[response(status = 503)]
    Unavailable(AnthropicErrorResponse),
}
