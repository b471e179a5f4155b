//! Searches for sessions, and the timeline of a session.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId};

use super::{FinishReason, RequestKind, RequestState, SessionStatus};
use crate::Timestamp;

/// Conditions of a search for sessions; all given ones must hold. If both an id and a name are given, either may match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSearch {
    /// Id of the session.
    pub session_id: Option<SessionId>,
    /// Words that the display name must contain, in any case.
    pub display_name: Option<String>,
    /// Projects to which the results are restricted.
    pub project_ids: Option<Vec<String>>,
    /// Entries that the user metadata must contain; values other than strings are compared as JSON.
    pub user_metadata: BTreeMap<String, String>,
    /// Statuses to which the results are restricted.
    pub statuses: Option<Vec<StatusFilter>>,
    /// Maximum number of sessions to return.
    pub limit: u32,
    /// Position behind which the results begin.
    pub after: Option<SearchPosition>,
}

/// Status of sessions in a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    /// The session accepts requests.
    Active,
    /// The client ended the session, for one of these reasons if they are given.
    Finished(Option<Vec<FinishReason>>),
    /// A status that sessions never have in this service.
    Never,
}

/// A place in the order of sessions: newest first, then by descending id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPosition {
    /// Time when the session was created.
    pub created_at: Timestamp,
    /// Id of the session.
    pub session: SessionId,
}

/// A session that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSession {
    /// Id of the session.
    pub id: SessionId,
    /// Time when the session was created.
    pub created_at: Timestamp,
    /// Project that contains the session.
    pub project_id: Option<String>,
    /// Name that is displayed to users.
    pub display_name: Option<String>,
    /// Metadata that the client attached, a JSON object.
    pub user_metadata: serde_json::Value,
    /// Status of the session, such as whether it accepts requests.
    pub status: SessionStatus,
    /// Number of unexpired checkpoints of the session's runs.
    pub checkpoints: u64,
    /// Total size of these checkpoints' files in bytes.
    pub checkpoint_bytes: u64,
}

/// A page of a search's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSessions {
    /// Sessions of the page, newest first.
    pub sessions: Vec<FoundSession>,
    /// Position at which the next page begins; `None` on the last page.
    pub next: Option<SearchPosition>,
}

/// Requests of a session that are still in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionTimeline {
    /// Time when the session was created.
    pub created_at: Timestamp,
    /// Time when the session ended; `None` while it is open.
    pub ended_at: Option<Timestamp>,
    /// Requests in the order of acceptance; only the last ones if there are very many.
    pub requests: Vec<TimelineRequest>,
}

/// A request in a session's timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineRequest {
    /// Id of the request's future.
    pub id: RequestId,
    /// Run of the request; `None` for a sample.
    pub run: Option<RunId>,
    /// Sampling session of a sample.
    pub sampling_session: Option<SamplingSessionId>,
    /// Position in the run's order, or the sample's number.
    pub seq_id: i64,
    /// Kind of the request.
    pub kind: RequestKind,
    /// State of the request.
    pub state: RequestState,
    /// Number of completions that a sample asks for.
    pub num_samples: i64,
    /// Tokens that count against quotas and rate limits.
    pub tokens: i64,
    /// Time when the request was accepted.
    pub accepted: Timestamp,
    /// Time when the request ended.
    pub ended: Option<Timestamp>,
}
