//! The API's OpenAPI document, made from the endpoints' own descriptions.

use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr};
use utoipa::{IntoResponses, Modify, OpenApi as _};

use crate::api::Endpoints;
use crate::wire::client::ErrorBody;
use crate::wire::futures::{FailedResponse, TryAgainResponse};

/// What any endpoint may answer instead of its result.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum Refusals {
    /// A field is wrong; the text names it.
    #[response(status = 400)]
    Invalid(ErrorBody),
    /// The API key is missing, malformed or unknown.
    #[response(status = 401)]
    Unauthorized(ErrorBody),
    /// The URL's signature is wrong or has expired.
    #[response(status = 403)]
    Forbidden(ErrorBody),
    /// There is no such thing.
    #[response(status = 404)]
    NotFound(ErrorBody),
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
    /// Too much is queued; repeat the same request after `Retry-After` seconds.
    #[response(status = 429)]
    Busy(ErrorBody),
    /// The service is at fault.
    #[response(status = 500)]
    Internal(ErrorBody),
}

/// The frame around the endpoints.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Trainyard",
        description = "A training service for language models that speaks the Tinker protocol.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(FailedResponse, TryAgainResponse)),
    security(("api_key" = [])),
    modifiers(&Security),
)]
struct Frame;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
        document.components.get_or_insert_default().add_security_scheme("api_key", scheme);
    }
}

/// The names under which the refusals stand in the document, by status.
const REFUSAL_NAMES: [(&str, &str); 10] = [
    ("400", "Invalid"),
    ("401", "Unauthorized"),
    ("403", "Forbidden"),
    ("404", "NotFound"),
    ("410", "Gone"),
    ("413", "TooLarge"),
    ("415", "UnsupportedMediaType"),
    ("422", "Mismatch"),
    ("429", "Busy"),
    ("500", "Internal"),
];

/// The document.
pub fn document() -> OpenApi {
    let mut document = Frame::openapi();
    document.merge(Endpoints::openapi());
    share_refusals(&mut document);
    document
}

/// Writes each refusal once, and refers to it everywhere else.
fn share_refusals(document: &mut OpenApi) {
    let mut refusals = Refusals::responses();
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten() {
            for (status, name) in REFUSAL_NAMES {
                if let Some(response) = operation.responses.responses.get_mut(status) {
                    *response = RefOr::Ref(Ref::from_response_name(name));
                }
            }
        }
    }
    let components = document.components.get_or_insert_default();
    for (status, name) in REFUSAL_NAMES {
        components.responses.extend(refusals.remove(status).map(|response| (name.to_owned(), response)));
    }
}

/// The document as `openapi/openapi.json` holds it: indented, with a line feed at the end.
///
/// # Errors
/// When the document can't be written as JSON.
pub fn json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&document())?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_committed_document_is_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/openapi.json");
        let committed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(committed == json().unwrap(), "openapi/openapi.json is out of date: run `make openapi` and commit it");
    }
}
