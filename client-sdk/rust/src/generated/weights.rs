// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `weights`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Copies a checkpoint that the caller may read: a new run holds one of the same kind and name, with the same files. The run can't be trained. A repetition with the same `x-idempotency-key`, or the same run, returns the same copy.
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
    /// Checks an upload whose files have arrived, tensor by tensor, and makes a checkpoint of it, from which training and sampling can start. A repetition returns the same checkpoint or refusal. While the check goes on, as behind other work, the answer is 503: repeat the call.
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
    /// Starts the upload of an adapter in PEFT's format: both files are sent to the URLs of the answer, and `external_weights_upload_finish` makes a checkpoint of them.
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
    /// Creates a run from a training checkpoint (`session_id`, `model_seq_id`), or loads one into an existing run (`model_id`, `seq_id`).
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
    /// Sends a file of an upload, or a part of one. The URL is its own authorisation.
    ///
    /// Without `Content-Range` the body is the whole file and replaces what arrived before. With `Content-Range: bytes <first>-<last>/<total>` it is a part: the first byte may lie at or before the end of what arrived, and bytes that are there already are skipped. What arrived stays when the connection breaks: `Content-Range: bytes */<total>` with an empty body asks how much that is. 200 says that the file is complete, 308 that more is missing, with what arrived in the header `Range`. `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked where they hold `sha-256`.
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
    /// What a checkpoint holds.
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
    /// For whom it was signed.
    pub tenant: String,
    /// When it ends, in seconds since the epoch.
    pub expires: i64,
    /// HMAC-SHA256 of all the rest.
    pub signature: String,
}
