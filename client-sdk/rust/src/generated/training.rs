// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `training`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Stores a loss function as a graph of allowed operations. The session and `custom_loss_seq_id` identify it; its future is done at once. Requests of the session's runs use it as the loss function `custom` with the setting `loss_id`.
    ///
    /// `POST /api/v1/create_custom_loss`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn create_custom_loss(
        &self,
        body: &types::CreateCustomLossRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "create_custom_loss"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Creates a run: a LoRA adapter if the rank is positive, all parameters otherwise. The session and `model_seq_id` identify it.
    ///
    /// `POST /api/v1/create_model`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn create_model(
        &self,
        body: &types::CreateModelRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "create_model"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Computes a loss without its gradient. The body is JSON, as older clients send it.
    ///
    /// `POST /api/v1/forward`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn forward(
        &self,
        body: &types::ForwardBody,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "forward"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Computes a loss and adds its gradient to the run's, unless `forward_only` is set. The body is the protobuf message `ForwardBackwardRequest` (see `tinker_public.proto`), plain or compressed with zstd, or JSON.
    ///
    /// `POST /api/v1/forward_backward`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn forward_backward(
        &self,
        body: &types::ForwardBackwardBody,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "forward_backward"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns what a run trains, and the name of its tokenizer.
    ///
    /// `POST /api/v1/get_info`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn get_info(
        &self,
        body: &types::GetInfoRequest,
    ) -> Result<types::GetInfoResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "get_info"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Applies a run's accumulated gradient and clears it.
    ///
    /// `POST /api/v1/optim_step`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn optim_step(
        &self,
        body: &types::OptimStepRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "optim_step"])
            .json(body)?;
        self.send_for_json(request).await
    }
}
