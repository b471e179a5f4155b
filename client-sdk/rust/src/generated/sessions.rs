// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `sessions`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Opens a session. A call that is repeated with the same `x-idempotency-key` returns the same session.
    ///
    /// `POST /api/v1/create_session`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn create_session(
        &self,
        body: &types::CreateSessionRequest,
    ) -> Result<types::CreateSessionResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "create_session"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Keeps a session alive. After the end of the session, the response is 410, so that the client stops.
    ///
    /// `POST /api/v1/session_heartbeat`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn session_heartbeat(
        &self,
        body: &types::HeartbeatRequest,
    ) -> Result<types::HeartbeatResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "session_heartbeat"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Lists the caller's sessions, newest first.
    ///
    /// `GET /api/v1/sessions`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn sessions(
        &self,
        query: &SessionsQuery,
    ) -> Result<types::SessionsResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["api", "v1", "sessions"])
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Searches the caller's sessions, newest first.
    ///
    /// `POST /api/v1/sessions/search`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn sessions_search(
        &self,
        body: &types::SessionSearchRequest,
    ) -> Result<types::SessionSearchResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "sessions", "search"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns a session with its runs and samplers.
    ///
    /// `GET /api/v1/sessions/{session_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn session(
        &self,
        session_id: &str,
        query: &SessionQuery,
    ) -> Result<types::SessionResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "sessions", &session_id.to_string()],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Ends a session. The call can be repeated; the first reason is kept.
    ///
    /// `POST /api/v1/sessions/{session_id}/finish`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn session_finish(
        &self,
        session_id: &str,
        body: &types::FinishRequest,
    ) -> Result<(), Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "sessions", &session_id.to_string(), "finish"],
            )
            .json(body)?;
        self.send_for_nothing(request).await
    }
    /// Moves a session, with its runs and sampling sessions, to a project. A project is a name that sessions share.
    ///
    /// `PUT /api/v1/sessions/{session_id}/project`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn session_project(
        &self,
        session_id: &str,
        body: &types::SessionProjectRequest,
    ) -> Result<(), Error> {
        let request = Request::new(
                reqwest::Method::PUT,
                &["api", "v1", "sessions", &session_id.to_string(), "project"],
            )
            .json(body)?;
        self.send_for_nothing(request).await
    }
    /// Returns the URL of a session's timeline as a Perfetto trace. The URL contains its authorisation.
    ///
    /// `GET /api/v1/sessions/{session_id}/trace_export`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn trace_export(
        &self,
        session_id: &str,
    ) -> Result<types::TraceExportResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "sessions", &session_id.to_string(), "trace_export"],
        );
        self.send_for_json(request).await
    }
    /// Downloads the current timeline of a session as a Perfetto trace. The URL contains its authorisation.
    ///
    /// `GET /api/v1/traces/{session_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn trace_download(
        &self,
        session_id: &str,
        query: &TraceDownloadQuery,
    ) -> Result<Vec<u8>, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "traces", &session_id.to_string()],
            )
            .query(query)?;
        self.send_for_bytes(request).await
    }
}
/// What `sessions` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct SessionsQuery {
    /// Maximum number of items to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Number of items to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
    /// Returns only items of sessions in this project of the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}
/// What `session` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct SessionQuery {
    /// `owned` (the default), or `accessible` to include what other tenants have made public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_scope: Option<String>,
}
/// What `trace_download` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TraceDownloadQuery {
    /// Tenant that the URL was signed for.
    pub tenant: String,
    /// Time at which the URL expires, in seconds since 1970.
    pub expires: i64,
    /// HMAC-SHA256 of the other parameters and the path.
    pub signature: String,
}
