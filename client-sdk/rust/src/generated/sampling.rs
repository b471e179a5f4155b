// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `sampling`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Samples completions of a prompt. The sampling session and `seq_id` identify the request; `seq_id` does not order it.
    ///
    /// `POST /api/v1/asample`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn asample(
        &self,
        body: &types::SampleRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "asample"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Opens a sampling session on a base model or a sampler checkpoint. The session and `sampling_session_seq_id` identify it. Weights are loaded when they are first needed.
    ///
    /// `POST /api/v1/create_sampling_session`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn create_sampling_session(
        &self,
        body: &types::CreateSamplingSessionRequest,
    ) -> Result<types::CreateSamplingSessionResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "create_sampling_session"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns a number for a clone of a sampling session's client. The clone counts its samples from `client_counter` times 10^9, so that no two clients use the same `seq_id`.
    ///
    /// `POST /api/v1/join_sampling_session`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn join_sampling_session(
        &self,
        body: &types::JoinSamplingSessionRequest,
    ) -> Result<types::JoinSamplingSessionResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "join_sampling_session"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns the model that a sampling session samples from.
    ///
    /// `GET /api/v1/samplers/{sampler_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn sampler(
        &self,
        sampler_id: &str,
    ) -> Result<types::SamplerResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "samplers", &sampler_id.to_string()],
        );
        self.send_for_json(request).await
    }
}
