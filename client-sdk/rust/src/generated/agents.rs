// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `agents`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Lists the caller's agent sessions, newest first, until their retention is over.
    ///
    /// `GET /api/v1/agent_sessions`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn agent_sessions(
        &self,
        query: &AgentSessionsQuery,
    ) -> Result<types::AgentSessionsResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "agent_sessions"],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Creates a session with a key of its own. Programs that speak the OpenAI or Anthropic API sample with the key.
    ///
    /// The key serves only these APIs. Their field `model` may have any value: the session's weights are sampled. Replies are recorded with their tokens, and a conversation continues from the tokens that were recorded.
    ///
    /// `POST /api/v1/agent_sessions`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn agent_session_create(
        &self,
        body: &types::CreateAgentSessionRequest,
    ) -> Result<types::CreateAgentSessionResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "agent_sessions"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns an agent session with its limits and what is used of them.
    ///
    /// `GET /api/v1/agent_sessions/{agent_session_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn agent_session(
        &self,
        agent_session_id: &str,
    ) -> Result<types::AgentSessionResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "agent_sessions", &agent_session_id.to_string()],
        );
        self.send_for_json(request).await
    }
    /// Ends an agent session: its key is refused, and running requests end. The call can be repeated.
    ///
    /// Trajectories can be read, and rewards posted, until the session's retention is over.
    ///
    /// `DELETE /api/v1/agent_sessions/{agent_session_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn agent_session_end(&self, agent_session_id: &str) -> Result<(), Error> {
        let request = Request::new(
            reqwest::Method::DELETE,
            &["api", "v1", "agent_sessions", &agent_session_id.to_string()],
        );
        self.send_for_nothing(request).await
    }
    /// Sets the reward of a turn, of the branch that ends with a turn, or of the whole session. A later call replaces it.
    ///
    /// `POST /api/v1/agent_sessions/{agent_session_id}/rewards`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn agent_rewards(
        &self,
        agent_session_id: &str,
        body: &types::AgentRewardRequest,
    ) -> Result<types::AgentRewardResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &[
                    "api",
                    "v1",
                    "agent_sessions",
                    &agent_session_id.to_string(),
                    "rewards",
                ],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns the branches of an agent session as examples for `forward_backward`.
    ///
    /// A branch has the turns from a first one to one that no other continues. Turns that several branches share are trained in the first one.
    ///
    /// `GET /api/v1/agent_sessions/{agent_session_id}/trajectories`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn agent_trajectories(
        &self,
        agent_session_id: &str,
        query: &AgentTrajectoriesQuery,
    ) -> Result<types::TrajectoriesResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &[
                    "api",
                    "v1",
                    "agent_sessions",
                    &agent_session_id.to_string(),
                    "trajectories",
                ],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
}
/// What `agent_sessions` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AgentSessionsQuery {
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
/// What `agent_trajectories` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AgentTrajectoriesQuery {
    /// Maximum number of branches to return. A page with many tokens has fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Number of branches to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}
