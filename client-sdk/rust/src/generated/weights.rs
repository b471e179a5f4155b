// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `weights`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Copies a checkpoint that the caller may read. A new run, which can't be trained, holds a checkpoint of the same kind and name with the same files. A call that is repeated with the same `x-idempotency-key`, or with the same run, returns the same copy.
    ///
    /// `POST /api/v1/copy_weights`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn copy_weights(
        &self,
        body: &types::CopyWeightsRequest,
    ) -> Result<types::CopyWeightsResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "copy_weights"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it. Training and sampling can start from the checkpoint. A repeated call returns the same checkpoint or refusal. While the check continues or waits for other work, the response is 503: repeat the call.
    ///
    /// `POST /api/v1/external_weights_upload_finish`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn external_weights_upload_finish(
        &self,
        body: &types::UploadFinishRequest,
    ) -> Result<types::UploadFinishResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "external_weights_upload_finish"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Starts the upload of an adapter in PEFT's format. The client sends both files to the URLs of the response, and `external_weights_upload_finish` creates a checkpoint from them.
    ///
    /// `POST /api/v1/external_weights_upload_start`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn external_weights_upload_start(
        &self,
        body: &types::UploadStartRequest,
    ) -> Result<types::UploadStartResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "external_weights_upload_start"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Creates a run from a training checkpoint (`session_id`, `model_seq_id`), or loads a checkpoint into an existing run (`model_id`, `seq_id`).
    ///
    /// `POST /api/v1/load_weights`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn load_weights(
        &self,
        body: &types::LoadWeightsRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "load_weights"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Saves weights and optimizer state under a name.
    ///
    /// `POST /api/v1/save_weights`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn save_weights(
        &self,
        body: &types::SaveWeightsRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "save_weights"])
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Exports a run's weights for download.
    ///
    /// `POST /api/v1/save_weights_external`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn save_weights_external(
        &self,
        body: &types::SaveWeightsExternalRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "save_weights_external"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Freezes a run's weights for sampling: under a name, or in memory as a new sampling session.
    ///
    /// `POST /api/v1/save_weights_for_sampler`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn save_weights_for_sampler(
        &self,
        body: &types::SaveWeightsForSamplerRequest,
    ) -> Result<types::SubmitResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "save_weights_for_sampler"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Uploads a file of an adapter, or a part of one. The URL contains its authorisation.
    ///
    /// Without `Content-Range`, the body is the whole file and replaces what arrived before. With `Content-Range: bytes <first>-<last>/<total>`, it is a part. Its first byte may lie at or before the end of what arrived; bytes that are already there are skipped. What arrived is kept if the connection breaks. `Content-Range: bytes */<total>` with an empty body asks how much that is. Status 200 means that the file is complete, 308 that more is missing; the header `Range` contains what arrived. `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked if they contain `sha-256`.
    ///
    /// `PUT /api/v1/uploads/{upload_id}/{file}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn upload_file(
        &self,
        upload_id: &str,
        file: &str,
        query: &UploadFileQuery,
        body: Vec<u8>,
    ) -> Result<types::UploadedFileResponse, Error> {
        let request = Request::new(
                reqwest::Method::PUT,
                &["api", "v1", "uploads", &upload_id.to_string(), &file.to_string()],
            )
            .query(query)?
            .bytes(body, "application/octet-stream");
        self.send_for_json(request).await
    }
    /// Returns what a checkpoint contains.
    ///
    /// `POST /api/v1/weights_info`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn weights_info(
        &self,
        body: &types::WeightsInfoRequest,
    ) -> Result<types::WeightsInfoResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "weights_info"])
            .json(body)?;
        self.send_for_json(request).await
    }
}
/// What `upload_file` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct UploadFileQuery {
    /// Tenant that the URL was signed for.
    pub tenant: String,
    /// Time at which the URL expires, in seconds since 1970.
    pub expires: i64,
    /// HMAC-SHA256 of the other parameters and the path.
    pub signature: String,
}
