//! The state of the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use trainyard_protocol::{MemoryPlan, RequestId, RunId, SessionId, TenantId};

use super::effects::QueueEffects;
use super::request::{InFlightRequest, PayloadSlot};
use super::run_queue::RunQueue;
use crate::quotas::{Cost, Throttle};
use crate::{Policies, SamplingSession, Timestamp, WorkItem};

/// A candidate for the next start: the head of a run, or a sample by its arrival number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StartCandidate {
    Run(RunId),
    Sample(i64),
}

impl StartCandidate {
    /// Returns the arrival number of a sample.
    pub(super) fn sample(&self) -> Option<i64> {
        match self {
            Self::Run(_) => None,
            Self::Sample(arrival) => Some(*arrival),
        }
    }
}

/// A session with runs or samples in the queue.
#[derive(Debug, Default)]
pub(super) struct SessionLoad {
    /// Whether the session no longer accepts requests; it is removed once it has no open request.
    pub(super) ending: bool,
    /// Number of pending and in-flight requests, replays included.
    pub(super) open_requests: usize,
    pub(super) runs: BTreeSet<RunId>,
    pub(super) snapshots: BTreeSet<String>,
}

/// A snapshot of a run for sampling, by its key.
#[derive(Debug)]
pub(super) struct SamplerSnapshot {
    pub(super) run: RunId,
    /// Whether the snapshot is in the worker's memory. False until a replay has made it again, and after it was
    /// evicted.
    pub(super) ready: bool,
    /// Folder in the storage, once the snapshot is saved.
    pub(super) dir: Option<PathBuf>,
    /// Time when the snapshot was taken, on the scale of [`Queue::uses`].
    pub(super) made: u64,
    /// Time when the snapshot was last used, on the scale of [`Queue::uses`].
    pub(super) used: u64,
    /// Samples that wait for the snapshot, by arrival number.
    pub(super) waiting: BTreeSet<i64>,
}

/// A sample that is pending.
#[derive(Debug)]
pub(crate) struct PendingSample {
    pub(crate) request: RequestId,
    pub(crate) tenant: TenantId,
    pub(crate) seq_id: i64,
    /// Number of the claim under which the sample is here.
    pub(crate) claim: i64,
    pub(crate) cost: Cost,
    pub(crate) sequences: usize,
    pub(crate) sampling: Arc<SamplingSession>,
    pub(crate) payload: PayloadSlot,
}

/// Requests with which several workers crashed; each is executed with no other in-flight request.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// Requests that could start, in order.
    pub(super) waiting: VecDeque<StartCandidate>,
    /// Whether the next request may start; nothing else starts in the meantime.
    pub(super) due: bool,
    /// Time until which other requests have the worker.
    pub(super) cooldown_until: Option<Timestamp>,
    /// Next request, and whether its isolated start is recorded in the store.
    pub(super) next: Option<(RequestId, bool)>,
    /// Request that was started, and its start.
    pub(super) started: Option<(RequestId, Timestamp)>,
}

/// The memory for runs, and the runs that wait for some of it.
#[derive(Debug, Default)]
pub(super) struct RunMemoryBudget {
    pub(super) plan: MemoryPlan,
    /// Waiting runs by arrival number.
    pub(super) waiting: BTreeMap<u64, RunId>,
    pub(super) arrivals: u64,
    /// Whether some of them are still unexamined.
    pub(super) unseen: bool,
}

/// The queue of requests in memory, described in [`crate::queue`].
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(super) sessions: BTreeMap<SessionId, SessionLoad>,
    pub(super) runs: HashMap<RunId, RunQueue>,
    /// Runs whose head may be startable, in the order in which they became so.
    pub(super) ready_runs: VecDeque<RunId>,
    /// Pending samples by arrival number.
    pub(super) samples: BTreeMap<i64, PendingSample>,
    /// Arrival numbers of pending samples.
    pub(super) arrivals: HashMap<RequestId, i64>,
    pub(super) ready_samples: BTreeSet<i64>,
    /// Numbers of pending and in-flight samples, by tenant.
    pub(super) open_samples: BTreeMap<TenantId, u64>,
    pub(super) snapshots: HashMap<String, SamplerSnapshot>,
    pub(super) in_flight: HashMap<RequestId, InFlightRequest>,
    /// Candidates held back by their tenant's rate limit.
    pub(super) throttle: Throttle<StartCandidate>,
    pub(super) quarantine: Quarantine,
    /// Budget by which runs are admitted to the worker's memory.
    pub(super) memory: RunMemoryBudget,
    /// Cancellations and evictions for the worker.
    pub(super) signals: VecDeque<WorkItem>,
    /// Number of uses of snapshots.
    pub(super) uses: u64,
    /// Tokens of executed work after which a run is saved.
    pub(super) save_after: u64,
    /// Whether the worker is about to stop.
    pub(super) draining: bool,
    /// Number of sequences that the engine decodes together.
    pub(super) decode_slots: usize,
    /// Whether the store has samples that this worker could claim if it had capacity for them.
    pub(super) unclaimed_samples: bool,
    /// Bytes of payloads in memory.
    pub(super) held_bytes: usize,
    pub(super) effects: QueueEffects,
}

impl Queue {
    /// Creates an empty queue that enforces tenants' rate limits.
    pub(crate) fn new(policies: Policies, save_after: u64, decode_slots: usize) -> Self {
        Self { throttle: Throttle::new(policies), save_after, decode_slots, ..Self::default() }
    }

    /// Returns the numbers of pending and of in-flight requests.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let pending = self.samples.len() + self.runs.values().map(RunQueue::pending_count).sum::<usize>();
        (pending as u64, self.in_flight.len() as u64)
    }

    /// Returns a request that the worker has.
    pub(crate) fn in_flight(&self, request: &RequestId) -> Option<&InFlightRequest> {
        self.in_flight.get(request)
    }

    /// Returns whether a request of the tenant is known to be unfinished. Pending requests of runs are not searched.
    pub(crate) fn has_open(&self, tenant: &TenantId, request: &RequestId) -> bool {
        if let Some(in_flight) = self.in_flight.get(request) {
            return !in_flight.replay && in_flight.tenant == *tenant;
        }
        let sample = self.arrivals.get(request).and_then(|arrival| self.samples.get(arrival));
        sample.is_some_and(|sample| sample.tenant == *tenant)
    }

    pub(super) fn signal(&mut self, item: WorkItem) {
        self.signals.push_back(item);
        self.effects.ready = true;
    }
}
