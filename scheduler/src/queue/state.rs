//! The queue's state.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use trainyard_protocol::{MemoryPlan, RequestId, RunId, SessionId, TenantId};

use super::effects::QueueEffects;
use super::request::{InFlightRequest, PayloadSlot};
use super::run_queue::RunQueue;
use crate::quotas::{Cost, Throttle};
use crate::{Policies, SamplingSession, Timestamp, WorkItem};

/// What may start next: the head of a run, or a sample by its arrival number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StartCandidate {
    Run(RunId),
    Sample(i64),
}

impl StartCandidate {
    /// The arrival number of a sample.
    pub(super) fn sample(&self) -> Option<i64> {
        match self {
            Self::Run(_) => None,
            Self::Sample(arrival) => Some(*arrival),
        }
    }
}

/// A session of which something is here.
#[derive(Debug, Default)]
pub(super) struct SessionLoad {
    /// It accepts nothing more; it is removed once no request of it is open.
    pub(super) ending: bool,
    /// Requests that are pending or in-flight, replays included.
    pub(super) open_requests: usize,
    pub(super) runs: BTreeSet<RunId>,
    pub(super) snapshots: BTreeSet<String>,
}

/// A snapshot of a run for sampling, by its key.
#[derive(Debug)]
pub(super) struct SamplerSnapshot {
    pub(super) run: RunId,
    /// The worker has it in memory. False until a replay has made it again, and after it was evicted.
    pub(super) ready: bool,
    /// Its folder in the storage, once it is saved.
    pub(super) dir: Option<PathBuf>,
    /// When it was taken, on the scale of [`Queue::uses`].
    pub(super) made: u64,
    /// When it was last used, on the scale of [`Queue::uses`].
    pub(super) used: u64,
    /// Samples that wait for it, by arrival number.
    pub(super) waiting: BTreeSet<i64>,
}

/// A pending sample.
#[derive(Debug)]
pub(crate) struct PendingSample {
    pub(crate) request: RequestId,
    pub(crate) tenant: TenantId,
    pub(crate) seq_id: i64,
    /// The number of the claim under which it is here.
    pub(crate) claim: i64,
    pub(crate) cost: Cost,
    pub(crate) sequences: usize,
    pub(crate) sampling: Arc<SamplingSession>,
    pub(crate) payload: PayloadSlot,
}

/// Requests that several workers crashed with; each is executed with no other in-flight request.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    /// Requests that could start, in order.
    pub(super) waiting: VecDeque<StartCandidate>,
    /// The next one may start: nothing else starts meanwhile.
    pub(super) due: bool,
    /// Until when other requests have the worker.
    pub(super) cooldown_until: Option<Timestamp>,
    /// The next one, and whether its isolated start is recorded in the store.
    pub(super) next: Option<(RequestId, bool)>,
    /// The one that was started, and when.
    pub(super) started: Option<(RequestId, Timestamp)>,
}

/// The memory for runs, and the runs that wait for some of it.
#[derive(Debug, Default)]
pub(super) struct RunMemoryBudget {
    pub(super) plan: MemoryPlan,
    /// By arrival.
    pub(super) waiting: BTreeMap<u64, RunId>,
    pub(super) arrivals: u64,
    /// Some of them have not been looked at yet.
    pub(super) unseen: bool,
}

/// See the description of [`crate::queue`].
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
    /// How many samples are pending or in-flight.
    pub(super) open_samples: BTreeMap<TenantId, u64>,
    pub(super) snapshots: HashMap<String, SamplerSnapshot>,
    pub(super) in_flight: HashMap<RequestId, InFlightRequest>,
    /// Holds back what its tenant's rate limit does not allow yet.
    pub(super) throttle: Throttle<StartCandidate>,
    pub(super) quarantine: Quarantine,
    /// Admits runs to the worker's memory.
    pub(super) memory: RunMemoryBudget,
    /// Cancellations and evictions for the worker.
    pub(super) signals: VecDeque<WorkItem>,
    /// Counts uses of snapshots.
    pub(super) uses: u64,
    /// Tokens of executed work after which a run is saved.
    pub(super) save_after: u64,
    /// The worker is about to stop.
    pub(super) draining: bool,
    /// Sequences that the engine decodes together.
    pub(super) decode_slots: usize,
    /// There are samples in the store that this worker could claim if it had capacity for them.
    pub(super) unclaimed_samples: bool,
    /// Bytes of payloads in memory.
    pub(super) held_bytes: usize,
    pub(super) effects: QueueEffects,
}

impl Queue {
    /// An empty queue that enforces tenants' rate limits.
    pub(crate) fn new(policies: Policies, save_after: u64, decode_slots: usize) -> Self {
        Self { throttle: Throttle::new(policies), save_after, decode_slots, ..Self::default() }
    }

    /// Numbers of pending and of in-flight requests.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let pending = self.samples.len() + self.runs.values().map(RunQueue::pending_count).sum::<usize>();
        (pending as u64, self.in_flight.len() as u64)
    }

    /// A request that the worker has.
    pub(crate) fn in_flight(&self, request: &RequestId) -> Option<&InFlightRequest> {
        self.in_flight.get(request)
    }

    /// Whether a request of the tenant is known to be unfinished. Pending requests of runs are not looked for.
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
