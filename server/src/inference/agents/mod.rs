//! Samples of agent sessions: a request with a session's key continues the tokens that the session has recorded, or
//! begins a branch, and its replies are recorded before it ends.
//!
//! | | |
//! |---|---|
//! | `prompt` | prompts of conversations, with and without a session |
//! | `open` | a session at the beginning of a request: its limits, and the prompt |
//! | `ledger` | what running requests may still use of a session's limits |
//! | `turn` | replies on their way to the store |
//! | `trajectories` | recorded turns as examples for training |

mod ledger;
mod open;
mod prompt;
pub(crate) mod trajectories;
mod turn;

use std::sync::OnceLock;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use trainyard_chat::continuation::Branch;
use trainyard_protocol::AgentSessionId;

pub(crate) use self::ledger::Ledger;
pub(crate) use self::open::{Chat, Open, open};
pub(crate) use self::prompt::chat_prompt;
pub(crate) use self::turn::Turn;
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
enum Start {
    Continued,
    /// With the reason, unless it is the session's first request.
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

    fn begins(&self, start: Start) {
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
