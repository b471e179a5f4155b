// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `futures`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Cancels a sample. The call can be repeated. A sample that has finished keeps its result.
    ///
    /// `POST /api/v1/cancel_future`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn cancel_future(
        &self,
        body: &types::CancelFutureRequest,
    ) -> Result<types::CancelFutureResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "cancel_future"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Waits up to half a minute for a request to finish, and returns its result. A result can be read repeatedly. Failed requests are answered with status 200 and a key `error`, pending ones with `try_again`.
    ///
    /// All responses are JSON, except for clients that send `Accept: application/x-protobuf`: these receive results of samples and training passes as protobuf. Both forms contain the same numbers.
    ///
    /// `POST /api/v1/retrieve_future`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn retrieve_future(
        &self,
        body: &types::RetrieveFutureRequest,
    ) -> Result<types::RetrieveFutureResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "retrieve_future"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Waits for samples of a sampling session to finish. The cursor covers exactly the samples that are returned.
    ///
    /// The results named in `retrieved_request_ids` are dropped some minutes later, unless the key has only read access.
    ///
    /// `POST /api/v1/retrieve_futures`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn retrieve_futures(
        &self,
        body: &types::RetrieveFuturesRequest,
    ) -> Result<types::RetrieveFuturesResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "retrieve_futures"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
}
