// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `client`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517). Needs no key.
    ///
    /// The set is empty before the first token. A new key is published five minutes before it signs. A former key stays until the last token that it signed has expired.
    ///
    /// `GET /.well-known/jwks.json`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn jwks(&self) -> Result<types::JwksResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &[".well-known", "jwks.json"]);
        self.send_for_json(request).await
    }
    /// Describes the API key of the call and its owner.
    ///
    /// `GET /api/v1/auth/apikey/me`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn own_key(&self) -> Result<types::OwnKeyResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "auth", "apikey", "me"],
        );
        self.send_for_json(request).await
    }
    /// Revokes the API key of the call.
    ///
    /// `DELETE /api/v1/auth/apikey/me`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn own_key_revoke(&self) -> Result<(), Error> {
        let request = Request::new(
            reqwest::Method::DELETE,
            &["api", "v1", "auth", "apikey", "me"],
        );
        self.send_for_nothing(request).await
    }
    /// Exchanges the caller's API key for a token with the same permissions and a short lifetime.
    ///
    /// The token is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`, `sub` (user or key), `tenant` (the organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and `jti`. It does not outlive its API key. A caller that already sends a token of this server gets the same token.
    ///
    /// `POST /api/v1/auth/token`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn auth_token(
        &self,
        body: &types::AuthTokenRequest,
    ) -> Result<types::AuthTokenResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "auth", "token"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns who the caller is and what it may do.
    ///
    /// `GET /api/v1/auth/whoami`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn whoami(&self) -> Result<types::WhoamiResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "auth", "whoami"],
        );
        self.send_for_json(request).await
    }
    /// Returns settings that the server chooses for a client.
    ///
    /// `POST /api/v1/client/config`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn client_config(
        &self,
        body: &types::ClientConfigRequest,
    ) -> Result<types::ClientConfigResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "client", "config"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns settings that a client polls periodically.
    ///
    /// `POST /api/v1/client/dynamic_config`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn client_dynamic_config(
        &self,
        body: &types::ClientConfigRequest,
    ) -> Result<types::ClientDynamicConfigResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "client", "dynamic_config"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Lists the base models that the server serves.
    ///
    /// `GET /api/v1/get_server_capabilities`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn get_server_capabilities(
        &self,
    ) -> Result<types::ServerCapabilities, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "get_server_capabilities"],
        );
        self.send_for_json(request).await
    }
    /// Returns whether the models are loaded. Needs no key.
    ///
    /// `GET /api/v1/healthz`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn healthz(&self) -> Result<types::HealthResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["api", "v1", "healthz"]);
        self.send_for_json(request).await
    }
    /// Accepts a client's events and discards them.
    ///
    /// `POST /api/v1/telemetry`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn telemetry(
        &self,
        body: &types::TelemetryRequest,
    ) -> Result<types::TelemetryResponse, Error> {
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "telemetry"])
            .json(body)?;
        self.send_for_json(request).await
    }
}
