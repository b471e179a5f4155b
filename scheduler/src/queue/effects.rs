//! Effects of changes of the queue: writes to record, payloads to read.

use std::collections::BTreeMap;

use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use crate::{MemoryWait, RequestKind};

/// End of a request that was not executed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rejection {
    /// The request's session ended or expired.
    Cancelled,
    Failed(OpError),
}

/// A request that fails without having been executed, and the lease under which its end is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rejected {
    pub(crate) request: RequestId,
    pub(crate) fence: Fence,
    pub(crate) error: OpError,
}

/// The fencing token of a write about a request: the write is refused once the request has passed to another worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fence {
    /// Run with the epoch of its lease.
    Run(RunId, i64),
    /// Number of the claim on the sample.
    Sample(i64),
}

/// A read from the store.
#[derive(Debug, PartialEq)]
pub(crate) enum Fetch {
    /// Reads the payload of a request of a run, or of its replay.
    Payload { run: RunId, request: RequestId, kind: RequestKind, base_model: String },
    /// Reads the payload of a sample.
    Sample { request: RequestId },
    /// Lists the operations to replay for the lease with this epoch.
    History { run: RunId, epoch: i64 },
    /// Reads the level of a tenant's token bucket.
    RateLimit { tenant: TenantId },
}

/// Effects of a change of the queue, in the order in which they are written.
#[derive(Debug, Default)]
pub(crate) struct QueueEffects {
    /// Runs that could not be restored, with their lease's epoch; recorded before `rejected`.
    pub(crate) unrestorable: Vec<(RunId, i64, OpError)>,
    /// Requests that fail without having been executed.
    pub(crate) rejected: Vec<Rejected>,
    /// Requests that left the queue because their session ended, and will be cancelled.
    pub(crate) cancelled: BTreeMap<SessionId, Vec<(RequestId, Fence)>>,
    /// Leases to release, with their epochs: the worker has unloaded these runs.
    pub(crate) released_runs: Vec<(RunId, i64)>,
    /// A quarantined request that starts once its isolated start is recorded.
    pub(crate) isolated_start: Option<RequestId>,
    /// Samples to release, with the numbers of their claims.
    pub(crate) released_samples: Vec<(RequestId, i64)>,
    /// Runs that begin or cease to wait for memory, with their leases' epochs.
    pub(crate) memory_waits: Vec<(RunId, i64, Option<MemoryWait>)>,
    pub(crate) fetches: Vec<Fetch>,
    /// Whether something is ready for the worker.
    pub(crate) ready: bool,
    /// Whether the worker has capacity for more requests from the store.
    pub(crate) has_capacity: bool,
}

impl QueueEffects {
    /// Ends a request that left the queue.
    pub(super) fn reject(&mut self, session: &SessionId, request: RequestId, fence: Fence, rejection: Rejection) {
        match rejection {
            Rejection::Cancelled => self.cancelled.entry(session.clone()).or_default().push((request, fence)),
            Rejection::Failed(error) => self.rejected.push(Rejected { request, fence, error }),
        }
    }
}
