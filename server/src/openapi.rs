//! The API's OpenAPI document, which is built from the endpoints' own descriptions.

mod aliases;
mod examples;
mod operations;
mod others;
mod refusals;
mod wording;

use trainyard_wire::anthropic::AnthropicErrorResponse;
use trainyard_wire::futures::{FailedResponse, TryAgainResponse};
use trainyard_wire::openai::ErrorResponse;
use utoipa::openapi::schema::{AnyOf, Schema};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};
use utoipa::{Modify, OpenApi as _};

use self::others::Others;
use crate::api;

/// The frame around the endpoints.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Trainyard",
        description = "A training service for language models that speaks the Tinker protocol.\n\nOperations on a run answer with \
            a future, `request_id`, whose result `retrieve_future` waits for. A run executes its requests in the order of \
            `seq_id`, from 1 without gaps. A request that is sent again with the same numbers and content is the same \
            request.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers(
        (url = "/", description = "the server that serves this document"),
        (url = "http://127.0.0.1:8000", description = "the default address"),
    ),
    components(schemas(AnthropicErrorResponse, ErrorResponse, FailedResponse, TryAgainResponse)),
    security(("api_key" = []), ("bearer" = [])),
    modifiers(&Security),
)]
struct Frame;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = ApiKeyValue::with_description("X-API-Key", "an API key, or a token of `auth/token`");
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(ApiKey::Header(key)));
        let bearer = || HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let text = "a JSON Web Token of `auth/token` or of the configured issuer, or an API key";
        let token = bearer().bearer_format("JWT").description(Some(text)).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(token));
        let metrics = bearer().description(Some("--metrics-token")).build();
        components.add_security_scheme("metrics_token", SecurityScheme::Http(metrics));
    }
}

/// Returns the whole document.
pub fn document() -> OpenApi {
    let mut document = Frame::openapi();
    document.merge(api::description());
    refusals::share(&mut document);
    document.merge(Others::openapi());
    examples::insert(&mut document);
    any_result(&mut document);
    wording::complete(&mut document);
    aliases::insert(&mut document);
    document
}

/// Describes the result of a future as any of its schemas instead of exactly one: the last one matches any object.
fn any_result(document: &mut OpenApi) {
    let schemas = &mut document.components.get_or_insert_default().schemas;
    if let Some(schema) = schemas.get_mut("RetrieveFutureResponse")
        && let RefOr::T(Schema::OneOf(one)) = schema
    {
        let mut any = AnyOf::new();
        any.items = std::mem::take(&mut one.items);
        any.description = one.description.take();
        *schema = RefOr::T(Schema::AnyOf(any));
    }
}

/// Returns the document as `openapi/openapi.json` contains it: indented, with a line feed at the end.
///
/// # Errors
/// An error if the document can't be written as JSON.
pub fn json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&document())?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
#[path = "openapi/tests.rs"]
mod tests;
