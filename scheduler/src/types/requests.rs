//! Submissions and their results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{CheckpointKind, OpError, RequestId, RunId, RunSpec, SamplingSessionId, SessionId};

use super::{Decoded, text_enum};

text_enum!(
    /// The operation that a request asks for.
    RequestKind {
        /// Creates a run.
        CreateModel = "create_model",
        /// Loads a training checkpoint into a run, or into a new run.
        LoadWeights = "load_weights",
        /// Computes loss and gradient.
        ForwardBackward = "forward_backward",
        /// Computes the loss alone.
        Forward = "forward",
        /// Applies the gradient: one optimizer step.
        OptimStep = "optim_step",
        /// Saves a training checkpoint.
        SaveWeights = "save_weights",
        /// Saves weights for sampling, in the storage or in memory.
        SaveWeightsForSampler = "save_weights_for_sampler",
        /// Exports an adapter.
        SaveWeightsExternal = "save_weights_external",
        /// Samples completions of a prompt.
        Sample = "sample",
        /// Saves a run's complete state, for its recovery. Maintenance, in no row.
        SaveRun = "save_run",
        /// Saves an in-memory snapshot for sampling. Maintenance, in no row.
        SaveSnapshot = "save_snapshot",
        /// Restores a run as it was saved. Maintenance, in no row.
        RestoreRun = "restore_run",
    }
);

impl RequestKind {
    /// Whether it is the scheduler's own, and no client's request.
    pub fn is_maintenance(self) -> bool {
        matches!(self, Self::SaveRun | Self::SaveSnapshot | Self::RestoreRun)
    }
}

/// A maintenance operation; the payload of a request of that kind ([`RequestKind::is_maintenance`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MaintenanceOp {
    /// See [`RequestKind::SaveRun`].
    SaveRun,
    /// See [`RequestKind::SaveSnapshot`].
    SaveSnapshot {
        /// Of the in-memory snapshot.
        key: String,
    },
    /// See [`RequestKind::RestoreRun`].
    RestoreRun {
        /// Base model, adapter and optimizer of the run.
        spec: RunSpec,
        /// The folder, in the storage, that a [`RequestKind::SaveRun`] wrote.
        dir: PathBuf,
    },
}

impl MaintenanceOp {
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Self::SaveRun => RequestKind::SaveRun,
            Self::SaveSnapshot { .. } => RequestKind::SaveSnapshot,
            Self::RestoreRun { .. } => RequestKind::RestoreRun,
        }
    }
}

text_enum!(
    /// The state of a request.
    RequestState {
        /// Durable, and not started.
        Queued = "queued",
        /// Handed to the worker.
        Running = "running",
        /// Finished with a result.
        Succeeded = "succeeded",
        /// Finished with an error.
        Failed = "failed",
        /// Cancelled before it finished.
        Cancelled = "cancelled",
    }
);

impl RequestState {
    /// Whether it is final.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Whether a transition to `next` is allowed. A restart queues running requests again.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(next, Self::Running | Self::Failed | Self::Cancelled),
            Self::Running => next.is_terminal() || next == Self::Queued,
            Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }
}

/// A run to create. Its identity is (session, model_seq_id); it is the run's request 0.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// The session that creates it.
    pub session: SessionId,
    /// The client's number, unique within the session.
    pub model_seq_id: i64,
    /// Base model, adapter and optimizer.
    pub spec: RunSpec,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
    /// [`RequestKind::CreateModel`] or [`RequestKind::LoadWeights`].
    pub kind: RequestKind,
    /// The encoded operation, as the worker gets it.
    pub payload: Bytes,
    /// The bytes that a retry must repeat: the payload without what may change, such as a random seed.
    pub identity: Bytes,
    /// The request is refused: its future fails with this, and so does every later one of the run.
    pub rejected: Option<OpError>,
}

/// A request to a run. Its identity is (run, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct RunSubmission {
    /// The run that executes it.
    pub run: RunId,
    /// Its place in the run's order, from 1.
    pub seq_id: i64,
    /// Any kind but [`RequestKind::CreateModel`] and [`RequestKind::Sample`].
    pub kind: RequestKind,
    /// The encoded operation, as the worker gets it.
    pub payload: Bytes,
    /// Its content, where it was decoded at submission.
    pub decoded: Decoded,
    /// The bytes that a retry must repeat: the payload without what may change.
    pub identity: Bytes,
    /// Tokens that it counts against quotas and rate limits.
    pub tokens: u64,
    /// The kind of the checkpoint that it writes, if it does.
    pub stores: Option<CheckpointKind>,
    /// The request is refused: it takes its place in the order and its future fails with this.
    pub rejected: Option<OpError>,
}

/// A request to a sampling session. Its identity is (sampling_session, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSubmission {
    /// Where its weights come from.
    pub sampling_session: SamplingSessionId,
    /// The client's number, from 0; clone `n` counts from `n * 10^9`.
    pub seq_id: i64,
    /// Completions to sample.
    pub num_samples: u32,
    /// The encoded operation, as the worker gets it.
    pub payload: Bytes,
    /// Its content, where it was decoded at submission.
    pub decoded: Decoded,
    /// The bytes that a retry must repeat: the payload without what may change.
    pub identity: Bytes,
    /// Tokens that it counts against quotas and rate limits: the prompt and all that may be sampled.
    pub tokens: u64,
    /// Training requests may name its sequences: its result is kept until the retention after the last use.
    pub recorded: bool,
}

/// The result of a sample whose sequences training requests may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResult {
    /// The result, as it was encoded.
    pub payload: Bytes,
    /// Whether [`Scheduler::renew_records`](crate::Scheduler::renew_records) should be told of its use.
    pub renewal_due: bool,
}

/// A durably accepted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Names the future with its result.
    pub request_id: RequestId,
    /// `<request_id>:<i>`, one per completion of a sample; empty otherwise.
    pub sample_sequence_ids: Vec<String>,
}

text_enum!(
    /// How a result is encoded.
    Encoding {
        /// JSON.
        Json = "json",
        /// Protocol buffers.
        Protobuf = "protobuf",
    }
);

/// The state of a future.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Not finished yet.
    Pending,
    /// Finished with a result.
    Succeeded {
        /// How the result is encoded.
        encoding: Encoding,
        /// The result.
        payload: Bytes,
    },
    /// Finished with an error.
    Failed(OpError),
    /// It was cancelled.
    Cancelled,
}

/// A finished sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionItem {
    /// Names the future with its result.
    pub request_id: RequestId,
    /// Whether it failed or was cancelled.
    pub failed: bool,
    /// Bytes of its result; 0 when it failed.
    pub payload_size: u64,
}

/// Finished samples of one clone of a sampling session, in the order in which they finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completions {
    /// All that finished after the given cursor, up to `cursor`.
    pub items: Vec<CompletionItem>,
    /// Covers exactly `items` and what came before.
    pub cursor: i64,
}

/// Why a request waits for memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryWait {
    /// Bytes that its run needs.
    pub needed: u64,
    /// Bytes that loaded runs hold.
    pub held: u64,
    /// Bytes for runs.
    pub capacity: u64,
}
