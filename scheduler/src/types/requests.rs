//! Submissions and what came of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{CheckpointKind, OpError, RequestId, RunId, RunSpec, SamplingSessionId, SessionId};

use super::{Decoded, text_enum};

text_enum!(
    /// What a request asks for.
    RequestKind {
        /// A new run.
        CreateModel = "create_model",
        /// A training checkpoint into a run, or into a new run.
        LoadWeights = "load_weights",
        /// Loss and gradient.
        ForwardBackward = "forward_backward",
        /// Loss alone.
        Forward = "forward",
        /// An optimizer step.
        OptimStep = "optim_step",
        /// A training checkpoint.
        SaveWeights = "save_weights",
        /// Weights for sampling, on disk or in memory.
        SaveWeightsForSampler = "save_weights_for_sampler",
        /// An exported adapter.
        SaveWeightsExternal = "save_weights_external",
        /// Completions of a prompt.
        Sample = "sample",
        /// Everything of a run, for its recovery. The scheduler asks for it; it is in no row.
        SaveRun = "save_run",
        /// An in-memory snapshot for sampling, written down. The scheduler asks for it; it is in no row.
        SaveSnapshot = "save_snapshot",
        /// A run as it was saved. The scheduler asks for it; it is in no row.
        RestoreRun = "restore_run",
    }
);

impl RequestKind {
    /// Whether the scheduler asks for it on its own account.
    pub fn is_upkeep(self) -> bool {
        matches!(self, Self::SaveRun | Self::SaveSnapshot | Self::RestoreRun)
    }
}

/// The payload of a request of the scheduler's own ([`RequestKind::is_upkeep`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Upkeep {
    /// See [`RequestKind::SaveRun`].
    SaveRun,
    /// See [`RequestKind::SaveSnapshot`].
    SaveSnapshot {
        /// The snapshot's key.
        key: String,
    },
    /// See [`RequestKind::RestoreRun`].
    RestoreRun {
        /// What the run trains.
        spec: RunSpec,
        /// The folder, in the storage, that a [`RequestKind::SaveRun`] wrote.
        dir: PathBuf,
    },
}

text_enum!(
    /// Where a request stands.
    RequestState {
        /// Durable, and not started.
        Queued = "queued",
        /// Handed to the worker.
        Running = "running",
        /// Finished with a result.
        Succeeded = "succeeded",
        /// Finished with an error.
        Failed = "failed",
        /// Given up before it finished.
        Cancelled = "cancelled",
    }
);

impl RequestState {
    /// Whether nothing follows it.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Whether `next` may follow. A restart re-queues what ran.
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
    /// The session it belongs to.
    pub session: SessionId,
    /// The client's number, unique within the session.
    pub model_seq_id: i64,
    /// What it trains.
    pub spec: RunSpec,
    /// What the client attached.
    pub user_metadata: BTreeMap<String, String>,
    /// [`RequestKind::CreateModel`] or [`RequestKind::LoadWeights`].
    pub kind: RequestKind,
    /// What the worker gets.
    pub payload: Bytes,
    /// What is compared on a retry: the payload without what a retry may change, such as a drawn seed.
    pub identity: Bytes,
    /// The request is refused: its future fails with this, and so does every later one of the run.
    pub rejected: Option<OpError>,
}

/// A request to a run. Its identity is (run, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct RunSubmission {
    /// The run.
    pub run: RunId,
    /// Its place in the run's order, from 1.
    pub seq_id: i64,
    /// Any kind but [`RequestKind::CreateModel`] and [`RequestKind::Sample`].
    pub kind: RequestKind,
    /// What the worker gets.
    pub payload: Bytes,
    /// The payload as the worker will use it.
    pub decoded: Decoded,
    /// What is compared on a retry: the payload without what a retry may change.
    pub identity: Bytes,
    /// What it costs, in tokens.
    pub tokens: u64,
    /// The kind of the checkpoint that it writes, if it does.
    pub stores: Option<CheckpointKind>,
    /// The request is refused: it takes its place in the order and its future fails with this.
    pub rejected: Option<OpError>,
}

/// A request to a sampling session. Its identity is (sampling_session, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSubmission {
    /// The sampling session.
    pub sampling_session: SamplingSessionId,
    /// The client's number, from 0; clone `n` counts from `n * 10^9`.
    pub seq_id: i64,
    /// How many completions.
    pub num_samples: u32,
    /// What the worker gets.
    pub payload: Bytes,
    /// The payload as the worker will use it.
    pub decoded: Decoded,
    /// What is compared on a retry: the payload without what a retry may change.
    pub identity: Bytes,
    /// What it costs at most, in tokens: the prompt and all that may be drawn.
    pub tokens: u64,
}

/// A durably accepted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its future.
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

/// What a future says.
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
    /// Given up.
    Cancelled,
}

/// A finished sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionItem {
    /// Its future.
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
