//! Refusals in the document: each is written once, and operations refer to it.

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::IntoResponses as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, Ref, RefOr, Response};

use super::examples;
use super::operations::operations;
use crate::api::{Refusals, endpoints};
use crate::endpoint::Refusal;
use crate::inference::error_form;

/// Names of the refusals in the document, with an example of their messages.
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
/// Message of a 404 in operations that name a model.
const NO_MODEL: &str = "model \"no-such-model\" does not exist";

/// Returns whether an operation can answer with a status.
fn can_answer(operation: &Operation, status: &str) -> bool {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let body = operation.request_body.is_some();
    let endpoint = endpoints().find(|endpoint| endpoint.name == id);
    let refuses = |refusal| endpoint.is_some_and(|endpoint| endpoint.refusals.contains(&refusal));
    match status {
        "400" => body || operation.parameters.is_some(),
        "401" => !["download", "trace_download"].contains(&id),
        "404" => refuses(Refusal::Missing),
        "408" | "413" | "415" => body,
        "410" => refuses(Refusal::Over),
        "422" => refuses(Refusal::Mismatch),
        _ => true,
    }
}

/// Writes an error in the form of a compatible API.
type Form = fn(StatusCode, &str) -> Value;

/// Returns the form of an operation's errors, if it belongs to a compatible API.
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
    for operation in operations(document) {
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
