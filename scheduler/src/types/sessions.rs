//! Sessions and sampling sessions.

use std::path::PathBuf;

use bytes::Bytes;
use trainyard_protocol::{RunId, SamplingSessionId, SessionId, TinkerPath};

use super::{SampleStorage, text_enum};
use crate::Timestamp;

/// A session to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// Labels, in the client's order.
    pub tags: Vec<String>,
    /// Metadata that the client attached; a JSON object.
    pub user_metadata: serde_json::Value,
    /// Version of the client's SDK.
    pub sdk_version: String,
    /// A project of the client's; not interpreted.
    pub project_id: Option<String>,
    /// A name for people; not interpreted.
    pub display_name: Option<String>,
    /// A repetition with the same key returns the same session.
    pub idempotency_key: Option<String>,
}

text_enum!(
    /// How the client says that a session ended.
    FinishReason {
        /// All went well; accepted work is still done.
        Success = "success",
        /// The client failed; queued work is cancelled.
        Errored = "errored",
        /// The client was stopped; queued work is cancelled.
        Interrupted = "interrupted",
    }
);

/// Whether a session accepts requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// It accepts requests.
    Active,
    /// The client ended it.
    Finished {
        /// As the client put it.
        reason: FinishReason,
        /// Free text from the client.
        detail: Option<String>,
    },
    /// Its heartbeats stopped.
    Expired,
}

/// A custom loss to create. Its identity is (session, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct NewCustomLoss {
    /// The session that can use it.
    pub session: SessionId,
    /// The client's number, unique within the session.
    pub seq_id: i64,
    /// Name, inputs and graph as JSON, checked.
    pub definition: Bytes,
}

/// A client's session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// A time-ordered id.
    pub id: SessionId,
    /// Labels, in the client's order.
    pub tags: Vec<String>,
    /// Metadata that the client attached; a JSON object.
    pub user_metadata: serde_json::Value,
    /// Version of the client's SDK.
    pub sdk_version: String,
    /// A project of the client's; not interpreted.
    pub project_id: Option<String>,
    /// A name for people; not interpreted.
    pub display_name: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it accepts requests.
    pub status: SessionStatus,
    /// Its runs, oldest first.
    pub training_run_ids: Vec<RunId>,
    /// Its sampling sessions, oldest first.
    pub sampler_ids: Vec<SamplingSessionId>,
}

/// A sampling session to create. Its identity is (session, seq_id).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSamplingSession {
    /// The session it belongs to.
    pub session: SessionId,
    /// The client's number, unique within the session.
    pub seq_id: i64,
    /// Name of the base model.
    pub base_model: String,
    /// A sampler checkpoint; must exist and be readable by the tenant.
    pub model_path: Option<TinkerPath>,
    /// Key of an in-memory snapshot.
    pub snapshot: Option<String>,
}

/// Where samples get their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingSession {
    /// `<session>:sample:<seq_id>`.
    pub id: SamplingSessionId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The client's number.
    pub seq_id: i64,
    /// Name of the base model.
    pub base_model: String,
    /// The sampler checkpoint.
    pub model_path: Option<TinkerPath>,
    /// Folder of that checkpoint in the storage, as of the creation of the sampling session.
    pub checkpoint_dir: Option<PathBuf>,
    /// Key of the in-memory snapshot.
    pub snapshot: Option<String>,
    /// Folder of that snapshot in the storage, once it is saved.
    pub snapshot_dir: Option<PathBuf>,
    /// That folder was deleted, because nobody sampled from it for long: samples fail.
    pub collected: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where its samples are stored to be looked at.
    pub stores: Option<SampleStorage>,
}
