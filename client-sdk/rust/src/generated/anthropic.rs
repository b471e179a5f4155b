// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `anthropic`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Answers a conversation, rendered with the model's own chat template. With `stream`, the response is a stream of server-sent events from `message_start` to `message_stop`.
    ///
    /// Also served at `/v1/messages`.
    ///
    /// `POST /anthropic/api/v1/messages`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn anthropic_messages(
        &self,
        body: &types::MessagesRequest,
    ) -> Result<types::MessageResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["anthropic", "api", "v1", "messages"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Counts the tokens of a conversation, rendered with the model's own chat template. Nothing is sampled.
    ///
    /// Also served at `/v1/messages/count_tokens`.
    ///
    /// `POST /anthropic/api/v1/messages/count_tokens`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn anthropic_count_tokens(
        &self,
        body: &types::CountTokensRequest,
    ) -> Result<types::CountTokensResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["anthropic", "api", "v1", "messages", "count_tokens"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
}
