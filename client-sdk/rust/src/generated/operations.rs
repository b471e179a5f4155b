// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `operations`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Returns whether the models are loaded. The same operation as `/api/v1/healthz`.
    ///
    /// `GET /healthz`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn health(&self) -> Result<types::HealthResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["healthz"]);
        self.send_for_json(request).await
    }
    /// Returns whether requests should be sent to this server. The checks are store, schema, workers, storage, models, shutdown and disk. Needs no key.
    ///
    /// `GET /readyz`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn readyz(&self) -> Result<types::ReadyResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["readyz"]);
        self.send_for_json(request).await
    }
}
