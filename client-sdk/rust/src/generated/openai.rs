// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `openai`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Answers a conversation, rendered with the model's own chat template. With `stream`, the response is a stream of server-sent events: a `chat.completion.chunk` each, and `[DONE]` at the end.
    ///
    /// Also served at `/v1/chat/completions`.
    ///
    /// `POST /oai/api/v1/chat/completions`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn oai_chat_completions(
        &self,
        body: &types::ChatRequest,
    ) -> Result<types::ChatResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["oai", "api", "v1", "chat", "completions"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Completes texts or tokens. With `stream`, the response is a stream of server-sent events that ends with `[DONE]`.
    ///
    /// Also served at `/v1/completions`.
    ///
    /// `POST /oai/api/v1/completions`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn oai_completions(
        &self,
        body: &types::CompletionRequest,
    ) -> Result<types::CompletionResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["oai", "api", "v1", "completions"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Lists the models that the field `model` of the OpenAI and Anthropic APIs may name. These are the base models and the caller's sampler checkpoints. The key of an agent session lists the session's weights.
    ///
    /// Also served at `/v1/models`.
    ///
    /// `GET /oai/api/v1/models`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn oai_models(&self) -> Result<types::ModelsResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["oai", "api", "v1", "models"],
        );
        self.send_for_json(request).await
    }
    /// Answers a conversation of items, rendered with the model's own chat template. With `stream`, the response is a stream of server-sent events from `response.created` to `response.completed` or `response.incomplete`. Responses are not stored.
    ///
    /// Also served at `/v1/responses`.
    ///
    /// `POST /oai/api/v1/responses`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn oai_responses(
        &self,
        body: &types::ResponsesRequest,
    ) -> Result<types::ResponsesResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["oai", "api", "v1", "responses"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
}
