//! What passes between the scheduler and the worker.

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
    /// Give up a sample that was started; it must not be completed (a late completion is ignored).
    Cancel(RequestId),
    /// Forget a run: nothing more will be asked of it.
    UnloadRun(RunId),
    /// Forget an in-memory snapshot: no more samples will use it.
    DropSnapshot(String),
}

/// A request to execute.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Its id.
    pub request: RequestId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The run; `None` for a sample.
    pub run: Option<RunId>,
    /// The sampling session of a sample.
    pub sampling_session: Option<SamplingSession>,
    /// What it asks for.
    pub kind: RequestKind,
    /// Its place in the run's order (0 creates the run), or the sample's number.
    pub seq_id: i64,
    /// What was submitted.
    pub payload: Bytes,
    /// The same, read at the submission.
    pub decoded: Decoded,
    /// It was executed before a restart and is executed again to restore the run. The stored result
    /// stands: outcome and effects of this execution are not recorded.
    pub replay: bool,
}

/// What came of a request.
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

/// Makes the result of a request: the scheduler calls it, off the worker's thread.
pub type Encode = Box<dyn FnOnce() -> Outcome + Send + Sync>;

/// What else becomes true together with an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The run exists. Implied by a creation that succeeds.
    RunReady(RunId),
    /// The run can't be used. Implied by a creation that fails.
    RunFailed(RunId),
    /// A checkpoint was written.
    Checkpoint(NewCheckpoint),
    /// A sampling session exists.
    SamplingSession(NewSamplingSession),
    /// Everything of the run is in this folder of the storage.
    RunSaved(PathBuf),
    /// An in-memory snapshot of the run is in this folder of the storage too.
    SnapshotSaved {
        /// The snapshot's key.
        key: String,
        /// The folder.
        dir: PathBuf,
    },
}
