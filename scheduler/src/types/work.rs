//! Values exchanged between the scheduler and the worker.

use std::path::PathBuf;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, TenantId};

use super::{Decoded, Encoding, NewCheckpoint, NewSamplingSession, RequestKind, SamplingSession};

/// A task for the worker.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all items are work")]
pub enum WorkItem {
    /// Execute a request, then call [`crate::Scheduler::complete`].
    Start(Work),
    /// Cancel a sample that was started; it must not be completed (a stale completion is ignored).
    Cancel(RequestId),
    /// End a request of a run that was started: its session ended, so nobody waits for it. It is completed as failed.
    Abandon(RequestId),
    /// Unload a run, for which there will be no further requests.
    UnloadRun(RunId),
    /// Drop an in-memory snapshot, which no further samples will use.
    DropSnapshot(String),
}

/// A request to execute.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Id to name in the completion.
    pub request: RequestId,
    /// Tenant whose fair share the request uses.
    pub tenant: TenantId,
    /// Run of the request; `None` for a sample.
    pub run: Option<RunId>,
    /// The sampling session of a sample.
    pub sampling_session: Option<SamplingSession>,
    /// Base model of the run or the sampling session.
    pub base_model: String,
    /// Kind of the operation.
    pub kind: RequestKind,
    /// Position in the run's order (0 creates the run), or the sample's number.
    pub seq_id: i64,
    /// The operation as it was submitted, encoded.
    pub payload: Bytes,
    /// Content, if it was decoded before.
    pub decoded: Decoded,
    /// Whether the request was executed before a restart and is executed again to restore the run. The stored result
    /// stands: outcome and effects of this execution are not recorded.
    pub replay: bool,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The request has a result.
    Succeeded {
        /// Encoding of the result.
        encoding: Encoding,
        /// Encoded result of the request.
        payload: Bytes,
    },
    /// The request failed and left the run as it was.
    Failed(OpError),
}

/// Function that encodes the result of a request. The scheduler calls it once, off the worker's thread.
pub type Encode = Box<dyn FnOnce() -> Outcome + Send + Sync>;

/// A change of the store that is committed together with an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The run was created. Implied by a creation that succeeds.
    RunReady(RunId),
    /// The run can't be used. Implied by a creation that fails.
    RunFailed(RunId),
    /// A checkpoint was written.
    Checkpoint(NewCheckpoint),
    /// A sampling session was created.
    SamplingSession(NewSamplingSession),
    /// The run's complete state was saved to this folder of the storage.
    RunSaved(PathBuf),
    /// An in-memory snapshot of the run was saved.
    SnapshotSaved {
        /// Key of the snapshot.
        key: String,
        /// Folder of the snapshot in the storage.
        dir: PathBuf,
    },
}

/// Worker that a queued request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerWait {
    /// A worker that serves the base model.
    NotServed {
        /// Name of the base model.
        model: String,
    },
    /// A worker that serves the base model with the run's weights; the other workers serve different weights under that
    /// name.
    OtherWeights {
        /// Name of the base model.
        model: String,
    },
    /// A worker that has the numerics with which the run's results were computed.
    OtherArithmetic {
        /// Name of the base model.
        model: String,
        /// Arithmetic of the run, in one line.
        recorded: String,
        /// Arithmetic of the workers that serve the base model.
        served: Vec<String>,
    },
}
