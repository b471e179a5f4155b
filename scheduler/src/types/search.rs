//! Searching sessions, and the timeline of one.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId};

use super::{FinishReason, RequestKind, RequestState, SessionStatus};
use crate::Timestamp;

/// Which of a tenant's sessions are searched for. Everything that is given must hold, except that a session matches by its id
/// or by its name where both are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSearch {
    /// This session.
    pub session_id: Option<SessionId>,
    /// Words that all occur in the display name, in any case.
    pub display_name: Option<String>,
    /// In one of these projects.
    pub project_ids: Option<Vec<String>>,
    /// With these entries; what is no text is compared as JSON.
    pub user_metadata: BTreeMap<String, String>,
    /// With one of these statuses.
    pub statuses: Option<Vec<StatusFilter>>,
    /// Most sessions to return.
    pub limit: u32,
    /// Behind this one, in the order of the results.
    pub after: Option<SearchPosition>,
}

/// A session's status as searches name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    /// It accepts requests.
    Active,
    /// Its client ended it, for one of these reasons if they are given.
    Finished(Option<Vec<FinishReason>>),
    /// One that sessions never have here.
    Never,
}

/// A place in the order of sessions: newest first, then by descending id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPosition {
    /// When the session was created.
    pub created_at: Timestamp,
    /// Its id.
    pub session: SessionId,
}

/// A session that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSession {
    /// The session.
    pub id: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The project that it is in.
    pub project_id: Option<String>,
    /// A name for people.
    pub display_name: Option<String>,
    /// Metadata that the client attached; a JSON object.
    pub user_metadata: serde_json::Value,
    /// Whether it accepts requests.
    pub status: SessionStatus,
    /// Checkpoints of its runs that have not expired.
    pub checkpoints: u64,
    /// Bytes of their files.
    pub checkpoint_bytes: u64,
}

/// A page of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSessions {
    /// Newest first.
    pub sessions: Vec<FoundSession>,
    /// Where to go on; `None` when there are no more.
    pub next: Option<SearchPosition>,
}

/// The requests of a session that the store still has.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionTimeline {
    /// When the session was created.
    pub created_at: Timestamp,
    /// When it ended; `None` while it goes on.
    pub ended_at: Option<Timestamp>,
    /// In the order of acceptance; of very many, the last ones.
    pub requests: Vec<TimelineRequest>,
}

/// A request in a session's timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineRequest {
    /// The future.
    pub id: RequestId,
    /// The run; `None` for a sample.
    pub run: Option<RunId>,
    /// The sampling session of a sample.
    pub sampling_session: Option<SamplingSessionId>,
    /// Its place in the run's order, or the sample's number.
    pub seq_id: i64,
    /// The operation.
    pub kind: RequestKind,
    /// Whether it has ended, and how.
    pub state: RequestState,
    /// Completions that a sample asks for.
    pub num_samples: i64,
    /// Tokens that it counts.
    pub tokens: i64,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
}
