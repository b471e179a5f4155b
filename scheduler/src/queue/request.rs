//! Requests in the queue, while they are pending and while the worker has them.

use bytes::Bytes;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId, TenantId};

use super::effects::{Fence, Fetch};
use crate::quotas::Cost;
use crate::{Decoded, RequestKind, Timestamp};

/// Location of a pending request's payload.
#[derive(Debug)]
pub(crate) enum PayloadSlot {
    /// The payload is in memory.
    Held(Bytes, Decoded),
    /// The payload is only in the store.
    Stored,
    /// The payload is being read from the store.
    Reading,
}

/// A durably accepted request of a run, for the queue.
pub(crate) struct AcceptedRequest {
    pub(crate) request: RequestId,
    pub(crate) kind: RequestKind,
    pub(crate) cost: Cost,
    /// Payload; read back from the store if it is absent.
    pub(crate) payload: Option<(Bytes, Decoded)>,
}

/// A pending request of a run.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) request: RequestId,
    pub(crate) kind: RequestKind,
    pub(crate) cost: Cost,
    pub(crate) payload: PayloadSlot,
}

impl QueuedRequest {
    /// Marks the payload as being read and returns the read to perform.
    pub(super) fn fetch(&mut self, run: &RunId, base_model: String) -> Fetch {
        self.payload = PayloadSlot::Reading;
        Fetch::Payload { run: run.clone(), request: self.request.clone(), kind: self.kind, base_model }
    }
}

/// A request in the hands of the worker.
#[derive(Clone, Debug)]
pub(crate) struct InFlightRequest {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) kind: RequestKind,
    /// Run of the request; `None` for a sample.
    pub(crate) run: Option<RunId>,
    pub(crate) sampling_session: Option<SamplingSessionId>,
    pub(crate) fence: Fence,
    pub(crate) seq_id: i64,
    /// Whether the request is executed again to restore its run; its stored result stands.
    pub(crate) replay: bool,
    pub(crate) cost: Cost,
    /// Number of sequences that a sample asks for.
    pub(crate) sequences: usize,
    /// Whether another worker can execute the request as well.
    pub(crate) movable: bool,
    /// Whether the engine executes the request; false for a sample that waits there to be admitted.
    pub(crate) admitted: bool,
    /// Time when the worker got the request or, for a sample, when it was admitted.
    pub(crate) started: Timestamp,
}
