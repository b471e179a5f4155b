//! A request in the queue: while it is pending, and while the worker has it.

use bytes::Bytes;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId, TenantId};

use super::effects::{Fence, Fetch};
use crate::quotas::Cost;
use crate::{Decoded, RequestKind, Timestamp};

/// Where the payload of a pending request is.
#[derive(Debug)]
pub(crate) enum PayloadSlot {
    /// In memory.
    Held(Bytes, Decoded),
    /// In the store.
    Stored,
    /// Being read from the store.
    Reading,
}

/// A durably accepted request of a run, for the queue.
pub(crate) struct AcceptedRequest {
    pub(crate) request: RequestId,
    pub(crate) kind: RequestKind,
    pub(crate) cost: Cost,
    /// Read back from the store when it is not given.
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
    /// Marks the payload as being read and returns the read to do.
    pub(super) fn fetch(&mut self, run: &RunId, base_model: String) -> Fetch {
        self.payload = PayloadSlot::Reading;
        Fetch::Payload { run: run.clone(), request: self.request.clone(), kind: self.kind, base_model }
    }
}

/// A request that the worker has.
#[derive(Clone, Debug)]
pub(crate) struct InFlightRequest {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) kind: RequestKind,
    /// `None` for a sample.
    pub(crate) run: Option<RunId>,
    pub(crate) sampling_session: Option<SamplingSessionId>,
    pub(crate) fence: Fence,
    pub(crate) seq_id: i64,
    /// It is executed again to restore its run; its stored result stands.
    pub(crate) replay: bool,
    pub(crate) cost: Cost,
    /// Of a sample: sequences that it asks for.
    pub(crate) sequences: usize,
    /// Whether another worker can execute it as well.
    pub(crate) movable: bool,
    /// Whether the engine executes it; false for a sample that waits there to be admitted.
    pub(crate) admitted: bool,
    /// When the worker got it, and of a sample, when it was admitted.
    pub(crate) started: Timestamp,
}
