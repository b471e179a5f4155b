//! Values between the scheduler and the worker.

use std::path::PathBuf;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, TenantId};

use super::{Decoded, Encoding, NewCheckpoint, NewSamplingSession, RequestKind, SamplingSession};

/// Something for the worker to do.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all items are work")]
pub enum WorkItem {
    /// Execute a request, then call [`crate::Scheduler::complete`].
    Start(Work),
    /// Cancel a sample that was started; it must not be completed (a stale completion is ignored).
    Cancel(RequestId),
    /// Unload a run: no request of it will follow.
    UnloadRun(RunId),
    /// Drop an in-memory snapshot: no more samples will use it.
    DropSnapshot(String),
}

/// A request to execute.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// To be named in the completion.
    pub request: RequestId,
    /// Whose fair share it uses.
    pub tenant: TenantId,
    /// The run; `None` for a sample.
    pub run: Option<RunId>,
    /// The sampling session of a sample.
    pub sampling_session: Option<SamplingSession>,
    /// The base model of the run or the sampling session.
    pub base_model: String,
    /// The operation.
    pub kind: RequestKind,
    /// Its place in the run's order (0 creates the run), or the sample's number.
    pub seq_id: i64,
    /// The operation as it was submitted, encoded.
    pub payload: Bytes,
    /// Its content, where it was decoded before.
    pub decoded: Decoded,
    /// It was executed before a restart and is executed again to restore the run. The stored result
    /// stands: outcome and effects of this execution are not recorded.
    pub replay: bool,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has a result.
    Succeeded {
        /// How the result is encoded.
        encoding: Encoding,
        /// The result.
        payload: Bytes,
    },
    /// It failed and left the run as it was.
    Failed(OpError),
}

/// Encodes the result of a request. The scheduler calls it once, off the worker's thread.
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
        /// Of the snapshot.
        key: String,
        /// Its folder in the storage.
        dir: PathBuf,
    },
}

/// Which worker a queued request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerWait {
    /// One that serves the base model.
    NotServed {
        /// Its name.
        model: String,
    },
    /// One that serves the base model with the weights of the run: all others have other weights under that name.
    OtherWeights {
        /// Its name.
        model: String,
    },
    /// One that computes as the results of the run were computed.
    OtherArithmetic {
        /// Name of the base model.
        model: String,
        /// How the run was computed, in one line.
        recorded: String,
        /// How the workers that serve the base model compute.
        served: Vec<String>,
    },
}
