//! Refusals and failures in the form of the API that was called.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};
use trainyard_http::answer::json_response;
use trainyard_scheduler::Origin;
use trainyard_wire::anthropic::{AnthropicError, AnthropicErrorResponse};
use trainyard_wire::openai::{ErrorResponse, OpenAiError};

use crate::error::Detail;

/// Path prefix of the OpenAI API.
pub(crate) const OPENAI: &str = "/oai/api/v1/";
/// Path prefix of the Anthropic API.
pub(crate) const ANTHROPIC: &str = "/anthropic/api/v1/";
/// Path of responses in the OpenAI API, whose fields have other names.
const RESPONSES: &str = "/oai/api/v1/responses";
/// Short path prefix of both APIs.
const SHORT: &str = "/v1/";

/// Returns the full path for a path below `/v1`.
pub(crate) fn long_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix(SHORT)?;
    let messages = rest == "messages" || rest.starts_with("messages/");
    Some(format!("{}{rest}", if messages { ANTHROPIC } else { OPENAI }))
}

/// Returns the path below `/v1` that abbreviates this path.
pub(crate) fn short_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix(OPENAI).or_else(|| path.strip_prefix(ANTHROPIC))?;
    Some(format!("{SHORT}{rest}"))
}

/// Writes a refusal as clients of the called API expect it.
pub(crate) async fn in_own_form(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let write = match path {
        RESPONSES => responses_value,
        path if path.starts_with(OPENAI) => openai_value,
        path if path.starts_with(ANTHROPIC) => anthropic_value,
        _ => return next.run(request).await,
    };
    let response = next.run(request).await;
    let Some(Detail(detail)) = response.extensions().get::<Detail>() else { return response };
    let plain = json_response(response.status(), &write(response.status(), detail));
    let (mut parts, _) = response.into_parts();
    let (new, body) = plain.into_parts();
    for name in [header::CONTENT_LENGTH, header::CONTENT_TYPE] {
        if let Some(value) = new.headers.get(&name) {
            parts.headers.insert(name, value.clone());
        }
    }
    Response::from_parts(parts, body)
}

/// A refusal in the form of the OpenAI API, as JSON.
pub(crate) fn openai_value(status: StatusCode, detail: &str) -> Value {
    serde_json::to_value(openai(status, detail)).unwrap_or_else(|_| json!({ "error": { "message": detail } }))
}

/// A refusal of a response in the form of the OpenAI API, as JSON.
pub(crate) fn responses_value(status: StatusCode, detail: &str) -> Value {
    openai_value(status, &renamed(detail, &OF_RESPONSES))
}

/// A refusal in the form of the Anthropic API, as JSON.
pub(crate) fn anthropic_value(status: StatusCode, detail: &str) -> Value {
    serde_json::to_value(anthropic(status, detail)).unwrap_or_else(|_| json!({ "type": "error" }))
}

/// Fields that an API names otherwise than the Tinker protocol, with their names in the API.
type Names = [(&'static str, &'static str); 2];

const OF_OTHERS: Names = [("json_schema", "response_format.json_schema.schema"), ("max_tokens", "max_tokens")];
const OF_RESPONSES: Names = [("json_schema", "text.format.schema"), ("max_tokens", "max_output_tokens")];

/// Replaces names of sample fields by those of an API. Some fields are checked under the names of the Tinker protocol.
fn renamed<'a>(detail: &'a str, names: &Names) -> Cow<'a, str> {
    let Some(rest) = detail.strip_prefix("sampling_params.") else { return Cow::Borrowed(detail) };
    let named = names.iter().find_map(|(name, own)| Some((own, rest.strip_prefix(name)?)));
    named.map_or(Cow::Borrowed(rest), |(own, reason)| Cow::Owned(format!("{own}{reason}")))
}

/// A refusal in the form of the OpenAI API.
pub(crate) fn openai(status: StatusCode, detail: &str) -> ErrorResponse {
    let detail = &*renamed(detail, &OF_OTHERS);
    let unknown_model = status == StatusCode::NOT_FOUND && detail.starts_with("model ");
    let code = match status {
        StatusCode::UNAUTHORIZED => Some("invalid_api_key"),
        StatusCode::NOT_FOUND if unknown_model => Some("model_not_found"),
        StatusCode::NOT_FOUND => Some("unknown_url"),
        StatusCode::TOO_MANY_REQUESTS => Some("rate_limit_exceeded"),
        StatusCode::BAD_REQUEST if detail.contains("exceeds the model's context window") => {
            Some("context_length_exceeded")
        }
        _ => None,
    };
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let param = if unknown_model { Some("model") } else { field_of(detail) };
    ErrorResponse {
        error: OpenAiError {
            message: detail.to_owned(),
            kind: kind.to_owned(),
            param: param.filter(|_| status.is_client_error()).map(str::to_owned),
            code: code.map(str::to_owned),
        },
    }
}

/// A refusal in the form of the Anthropic API.
pub(crate) fn anthropic(status: StatusCode, detail: &str) -> AnthropicErrorResponse {
    let detail = &*renamed(detail, &OF_OTHERS);
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    AnthropicErrorResponse {
        kind: "error".to_owned(),
        error: AnthropicError { kind: kind.to_owned(), message: detail.to_owned() },
        request_id: Origin::current().map(|origin| origin.call.to_string()),
    }
}

/// The field that a text is about: the part before its first colon, or between backticks after `field`.
fn field_of(detail: &str) -> Option<&str> {
    let plain = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte))
    };
    let quoted = || Some(detail.split_once("field `")?.1.split_once('`')?.0);
    detail.split_once(": ").map(|(field, _)| field).filter(plain).or_else(|| quoted().filter(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_paths_mean_long_ones() {
        assert_eq!(long_path("/v1/models").as_deref(), Some("/oai/api/v1/models"));
        assert_eq!(long_path("/v1/messages").as_deref(), Some("/anthropic/api/v1/messages"));
        assert_eq!(long_path("/v1/messages/count_tokens").as_deref(), Some("/anthropic/api/v1/messages/count_tokens"));
        assert_eq!(long_path("/api/v1/asample"), None);
        for path in ["/oai/api/v1/chat/completions", "/anthropic/api/v1/messages/count_tokens"] {
            assert_eq!(short_path(path).and_then(|short| long_path(&short)).as_deref(), Some(path));
        }
    }

    #[test]
    fn the_field_at_fault_is_named() {
        assert_eq!(field_of("messages[0].content: wrong"), Some("messages[0].content"));
        assert_eq!(field_of("unknown field `foo`, expected one of `a`"), Some("foo"));
        assert_eq!(field_of("missing field `model`"), Some("model"));
        assert_eq!(field_of("the body is not valid JSON: oops"), None);
    }

    #[test]
    fn errors_have_the_types_of_their_apis() {
        let error = openai(StatusCode::NOT_FOUND, "model \"x\" does not exist").error;
        assert_eq!((error.code.as_deref(), error.param.as_deref()), (Some("model_not_found"), Some("model")));
        let error = openai(StatusCode::TOO_MANY_REQUESTS, "full").error;
        assert_eq!((error.kind.as_str(), error.code.as_deref()), ("rate_limit_error", Some("rate_limit_exceeded")));
        let param = |detail| openai(StatusCode::BAD_REQUEST, detail).error.param;
        assert_eq!(param("sampling_params.min_p: -1 is outside [0, 1]").as_deref(), Some("min_p"));
        let schema = param("sampling_params.json_schema: unsatisfiable");
        assert_eq!(schema.as_deref(), Some("response_format.json_schema.schema"));
        let of_response = |detail| responses_value(StatusCode::BAD_REQUEST, detail)["error"]["param"].clone();
        assert_eq!(of_response("sampling_params.json_schema: unsatisfiable"), "text.format.schema");
        assert_eq!(of_response("sampling_params.max_tokens: 0 is not enough"), "max_output_tokens");
        assert_eq!(of_response("input[0].role: expected user"), "input[0].role");
        assert_eq!(openai(StatusCode::INTERNAL_SERVER_ERROR, "a: b").error.param, None);
        assert_eq!(anthropic(StatusCode::UNAUTHORIZED, "no key").error.kind, "authentication_error");
        assert_eq!(anthropic(StatusCode::BAD_REQUEST, "n: 0").error.kind, "invalid_request_error");
    }
}
