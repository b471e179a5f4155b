//! The agent session that the key of a request belongs to, and what its response reports about the recorded reply.

use std::sync::OnceLock;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use trainyard_chat::continuation::Branch;
use trainyard_protocol::AgentSessionId;

use crate::auth::{Credential, Principal};

/// Headers that say whether a reply continues recorded tokens.
const BRANCH: HeaderName = HeaderName::from_static("x-trainyard-branch");
const REASON: HeaderName = HeaderName::from_static("x-trainyard-branch-reason");

/// The agent session whose key a request has.
pub(crate) struct Agent {
    id: AgentSessionId,
    /// How the request's replies begin, once it is known.
    start: OnceLock<Start>,
}

/// How the replies of a request begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Continued,
    /// A new branch begins, with the reason unless it is the session's first request.
    New(Option<Branch>),
}

impl Agent {
    /// The session of a caller, if the caller has a session's key.
    pub(crate) fn of(caller: &Principal) -> Option<Self> {
        match &caller.credential {
            Credential::Agent(id) => Some(Self { id: id.clone(), start: OnceLock::new() }),
            _ => None,
        }
    }

    pub(crate) fn id(&self) -> &AgentSessionId {
        &self.id
    }

    pub(super) fn begins(&self, start: Start) {
        // A request begins once.
        let _ = self.start.set(start);
    }

    /// Adds to a response how its replies begin.
    pub(crate) fn mark(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        match self.start.get() {
            None => {}
            Some(Start::Continued) => drop(headers.insert(BRANCH, HeaderValue::from_static("continued"))),
            Some(Start::New(reason)) => {
                headers.insert(BRANCH, HeaderValue::from_static("new"));
                if let Some(reason) = reason {
                    headers.insert(REASON, HeaderValue::from_static(reason.as_str()));
                }
            }
        }
        response
    }
}
