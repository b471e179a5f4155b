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
    /// Project that the client named; not interpreted.
    pub project_id: Option<String>,
    /// Name that is displayed to users; not interpreted.
    pub display_name: Option<String>,
    /// Key that identifies repetitions: they return the same session.
    pub idempotency_key: Option<String>,
}

text_enum!(
    /// Reason that a client gives for the end of a session.
    FinishReason {
        /// The client succeeded; accepted work is still done.
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
    /// The session accepts requests.
    Active,
    /// The client ended the session.
    Finished {
        /// Reason that the client gave.
        reason: FinishReason,
        /// Free text from the client.
        detail: Option<String>,
    },
    /// The session's heartbeats stopped.
    Expired,
}

impl SessionStatus {
    /// Whether the session has ended so that its requests are cancelled. After a success they are still executed.
    pub(crate) fn cancels(&self) -> bool {
        match self {
            Self::Active | Self::Finished { reason: FinishReason::Success, .. } => false,
            Self::Finished { .. } | Self::Expired => true,
        }
    }
}

/// A custom loss to create. Its identity is (session, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct NewCustomLoss {
    /// Session that can use the loss.
    pub session: SessionId,
    /// Client's number of the loss, unique within the session.
    pub seq_id: i64,
    /// Name, inputs and graph as JSON, already checked.
    pub definition: Bytes,
}

/// A session of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Id, ordered by time.
    pub id: SessionId,
    /// Labels, in the client's order.
    pub tags: Vec<String>,
    /// Metadata that the client attached, a JSON object.
    pub user_metadata: serde_json::Value,
    /// Version of the client's SDK.
    pub sdk_version: String,
    /// Project that the client named; not interpreted.
    pub project_id: Option<String>,
    /// Name that is displayed to users; not interpreted.
    pub display_name: Option<String>,
    /// Time when the session was created.
    pub created_at: Timestamp,
    /// Status of the session, such as whether it accepts requests.
    pub status: SessionStatus,
    /// Runs of the session, oldest first.
    pub training_run_ids: Vec<RunId>,
    /// Sampling sessions of the session, oldest first.
    pub sampler_ids: Vec<SamplingSessionId>,
}

/// A sampling session to create. Its identity is (session, seq_id).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSamplingSession {
    /// Session that owns the sampling session.
    pub session: SessionId,
    /// Client's number, unique within the session.
    pub seq_id: i64,
    /// Name of the base model.
    pub base_model: String,
    /// Sampler checkpoint, which must exist and be readable by the tenant.
    pub model_path: Option<TinkerPath>,
    /// Key of an in-memory snapshot.
    pub snapshot: Option<String>,
}

/// Source of the weights of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingSession {
    /// Id of the form `<session>:sample:<seq_id>`.
    pub id: SamplingSessionId,
    /// Session that owns the sampling session.
    pub session: SessionId,
    /// Client's number, unique within the session.
    pub seq_id: i64,
    /// Name of the base model.
    pub base_model: String,
    /// Path of the sampler checkpoint.
    pub model_path: Option<TinkerPath>,
    /// Folder of that checkpoint in the storage when the sampling session was created.
    pub checkpoint_dir: Option<PathBuf>,
    /// Key of the in-memory snapshot.
    pub snapshot: Option<String>,
    /// Folder of that snapshot in the storage, once it is saved.
    pub snapshot_dir: Option<PathBuf>,
    /// Whether that folder was deleted after long disuse, so that samples fail.
    pub collected: bool,
    /// Time when the sampling session was created.
    pub created_at: Timestamp,
    /// Run for which samples are stored for viewing, if it asked for that.
    pub stores: Option<SampleStorage>,
}
