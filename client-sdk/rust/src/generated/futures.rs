// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `futures`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Cancels a sample. Repetitions are accepted, and a finished sample keeps its result.
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
    /// Waits for a request to finish, for half a minute at most, and says what came of it. A result can be read repeatedly. Failures are answers with status 200 and a key `error`; a pending request says `try_again`.
    ///
    /// All answers are JSON, except the results of samples and training passes for a client that sends `Accept: application/x-protobuf`. Both forms hold the same numbers.
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
    /// Waits for samples of one sampling session to finish. The cursor covers exactly what is returned.
    ///
    /// Results named in `retrieved_request_ids` are dropped some minutes later, unless the key may only read.
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
