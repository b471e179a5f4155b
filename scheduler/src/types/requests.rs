//! Submitted requests and their results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trainyard_protocol::{CheckpointKind, OpError, RequestId, RunId, RunSpec, SamplingSessionId, SessionId};

use super::{Decoded, text_enum};

text_enum!(
    /// The operation that a request asks for.
    RequestKind {
        /// Creates a training run.
        CreateModel = "create_model",
        /// Loads a training checkpoint into a run, or into a new run.
        LoadWeights = "load_weights",
        /// Computes loss and gradient.
        ForwardBackward = "forward_backward",
        /// Computes the loss without a gradient.
        Forward = "forward",
        /// Applies the gradient: one optimizer step.
        OptimStep = "optim_step",
        /// Saves a training checkpoint.
        SaveWeights = "save_weights",
        /// Saves weights for sampling, in the storage or in memory.
        SaveWeightsForSampler = "save_weights_for_sampler",
        /// Exports an adapter for download.
        SaveWeightsExternal = "save_weights_external",
        /// Samples completions of a prompt.
        Sample = "sample",
        /// Saves a run's complete state for its recovery. A maintenance operation, which is in no row.
        SaveRun = "save_run",
        /// Saves an in-memory snapshot for sampling. A maintenance operation, which is in no row.
        SaveSnapshot = "save_snapshot",
        /// Restores a run as it was saved. A maintenance operation, which is in no row.
        RestoreRun = "restore_run",
    }
);

impl RequestKind {
    /// Whether the scheduler itself issues such requests, not clients.
    pub fn is_maintenance(self) -> bool {
        self.traits().maintenance
    }

    /// Whether such requests fill the disk: they create or save something.
    pub fn fills_disk(self) -> bool {
        self.traits().fills_disk
    }

    /// Which requests of this kind a restart executes again.
    pub(crate) fn replays(self) -> Replays {
        self.traits().replays
    }

    /// What distinguishes the kinds. A new kind is added here and nowhere else in the scheduler.
    const fn traits(self) -> KindTraits {
        let never = KindTraits { maintenance: false, fills_disk: false, replays: Replays::Never };
        let maintenance = KindTraits { maintenance: true, ..never };
        match self {
            Self::CreateModel => KindTraits { fills_disk: true, replays: Replays::All, ..never },
            Self::LoadWeights | Self::ForwardBackward | Self::OptimStep => {
                KindTraits { replays: Replays::All, ..never }
            }
            Self::Forward | Self::Sample => never,
            Self::SaveWeightsForSampler => KindTraits { fills_disk: true, replays: Replays::InMemory, ..never },
            Self::SaveWeights | Self::SaveWeightsExternal => KindTraits { fills_disk: true, ..never },
            Self::SaveRun | Self::SaveSnapshot | Self::RestoreRun => maintenance,
        }
    }
}

/// What distinguishes a kind of requests.
struct KindTraits {
    maintenance: bool,
    fills_disk: bool,
    replays: Replays,
}

/// Requests of a kind that a restart executes again, because they changed the worker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replays {
    Never,
    All,
    /// Requests that made a snapshot in memory.
    InMemory,
}

/// A maintenance operation; the payload of a request of that kind ([`RequestKind::is_maintenance`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MaintenanceOp {
    /// Saves a run: [`RequestKind::SaveRun`].
    SaveRun,
    /// Saves a snapshot: [`RequestKind::SaveSnapshot`].
    SaveSnapshot {
        /// Key of the in-memory snapshot.
        key: String,
    },
    /// Restores a run: [`RequestKind::RestoreRun`].
    RestoreRun {
        /// Base model, adapter and optimizer of the run.
        spec: RunSpec,
        /// Folder in the storage that a [`RequestKind::SaveRun`] wrote.
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
        /// The request is durable, but not started.
        Queued = "queued",
        /// The request was handed to the worker.
        Running = "running",
        /// The request finished with a result.
        Succeeded = "succeeded",
        /// The request finished with an error.
        Failed = "failed",
        /// The request was cancelled before it finished.
        Cancelled = "cancelled",
    }
);

impl RequestState {
    /// Whether the state is final.
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
    /// Session that creates the run.
    pub session: SessionId,
    /// Client's number of the run, unique within the session.
    pub model_seq_id: i64,
    /// Base model, adapter and optimizer.
    pub spec: RunSpec,
    /// Metadata that the client attached.
    pub user_metadata: BTreeMap<String, String>,
    /// Kind, [`RequestKind::CreateModel`] or [`RequestKind::LoadWeights`].
    pub kind: RequestKind,
    /// Operation, encoded for the worker.
    pub payload: Bytes,
    /// Bytes that a retry must repeat: the payload without parts that may change, such as a random seed.
    pub identity: Bytes,
    /// Error with which the request is refused: its future fails with it, and so does every later one of the run.
    pub rejected: Option<OpError>,
}

/// A request to a run. Its identity is (run, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct RunSubmission {
    /// Run that executes the request.
    pub run: RunId,
    /// Position in the run's order, from 1.
    pub seq_id: i64,
    /// Any kind except [`RequestKind::CreateModel`] and [`RequestKind::Sample`].
    pub kind: RequestKind,
    /// Operation, encoded for the worker.
    pub payload: Bytes,
    /// Content, if it was decoded at submission.
    pub decoded: Decoded,
    /// Bytes that a retry must repeat: the payload without parts that may change.
    pub identity: Bytes,
    /// Number of tokens that count against quotas and rate limits.
    pub tokens: u64,
    /// Kind of the checkpoint that the request writes, if it writes one.
    pub stores: Option<CheckpointKind>,
    /// Error with which the request is refused: the request takes its place in the order, and its future fails with it.
    pub rejected: Option<OpError>,
}

impl RunSubmission {
    /// Creates a submission without content, for the caller to complete.
    pub fn new(run: RunId, seq_id: i64, kind: RequestKind) -> Self {
        let (payload, identity) = (Bytes::new(), Bytes::new());
        let decoded = Decoded::default();
        Self { run, seq_id, kind, payload, decoded, identity, tokens: 0, stores: None, rejected: None }
    }
}

/// A request to a sampling session. Its identity is (sampling_session, seq_id).
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSubmission {
    /// Sampling session with the weights.
    pub sampling_session: SamplingSessionId,
    /// Client's number of the sample, from 0; clone `n` counts from `n * 10^9`.
    pub seq_id: i64,
    /// Number of completions to sample.
    pub num_samples: u32,
    /// Operation, encoded for the worker.
    pub payload: Bytes,
    /// Content, if it was decoded at submission.
    pub decoded: Decoded,
    /// Bytes that a retry must repeat: the payload without parts that may change.
    pub identity: Bytes,
    /// Number of tokens that count against quotas and rate limits: the prompt and all tokens that may be sampled.
    pub tokens: u64,
    /// Whether training requests may name the sample's sequences. If so, its result is kept until the retention after
    /// the last use.
    pub recorded: bool,
}

/// The result of a sample whose sequences training requests may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResult {
    /// Encoded result of the sample.
    pub payload: Bytes,
    /// Whether the use must be reported to [`Scheduler::renew_records`](crate::Scheduler::renew_records).
    pub renewal_due: bool,
}

/// A durably accepted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Id of the future with the result.
    pub request_id: RequestId,
    /// Ids `<request_id>:<i>`, one per completion of a sample; empty for other requests.
    pub sample_sequence_ids: Vec<String>,
}

text_enum!(
    /// Encoding of a result.
    Encoding {
        /// JSON text, as in the API.
        Json = "json",
        /// Protocol buffers, as in the API.
        Protobuf = "protobuf",
    }
);

/// The state of a future.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The request has yet to finish.
    Pending,
    /// The request finished with a result.
    Succeeded {
        /// Encoding of the result.
        encoding: Encoding,
        /// Encoded result of the request.
        payload: Bytes,
    },
    /// The request finished with an error.
    Failed(OpError),
    /// The request was cancelled.
    Cancelled,
}

/// A sample that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionItem {
    /// Id of the future with the result.
    pub request_id: RequestId,
    /// Whether the sample failed or was cancelled.
    pub failed: bool,
    /// Size of the result in bytes; 0 if the sample failed.
    pub payload_size: u64,
}

/// Finished samples of one clone of a sampling session, in the order in which they finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completions {
    /// Samples that finished after the given cursor, up to `cursor`.
    pub items: Vec<CompletionItem>,
    /// Position behind `items` and everything before them.
    pub cursor: i64,
}

/// Memory for which a request waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryWait {
    /// Bytes that the run needs.
    pub needed: u64,
    /// Bytes that loaded runs use.
    pub held: u64,
    /// Bytes available to runs in total.
    pub capacity: u64,
}
