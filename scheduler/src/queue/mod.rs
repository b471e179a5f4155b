//! What waits and what the worker holds: the order of execution, in memory.
//!
//! The queue is a plain state machine without input or output. A call changes it and leaves in [`Out`]
//! what has to follow: ends to record, bytes to read. The store is its log: everything here can be
//! built again from rows.

mod runs;
mod samples;
mod suspects;
#[cfg(test)]
mod tests;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, SamplingSessionId, SessionId, TenantId};

use crate::quotas::{Cost, Level, Throttle};
use crate::{Decoded, Pause, Policies, RequestKind, SamplingSession, Timestamp, Work, WorkItem};

pub(crate) use runs::{History, Replayed, RunQueue, creation_failed, session_ended};
pub(crate) use samples::{Claimed, Sample};
pub(crate) use upkeep::entry as upkeep_entry;

use suspects::Suspects;

/// Payloads of waiting requests are kept in memory up to this many bytes; beyond, they are read back
/// when their turn comes.
const HELD_BYTES: usize = 512 * 1024 * 1024;

/// While no more than this many bytes are held, payloads are also kept as they were read at their submission.
const DECODED_BYTES: usize = 64 * 1024 * 1024;

/// A request's payload.
#[derive(Debug)]
pub(crate) enum Slot {
    /// In memory.
    Held(Bytes, Decoded),
    /// In the store.
    Stored,
    /// Being read from the store.
    Reading,
}

/// A request of a run.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) request: RequestId,
    pub(crate) kind: RequestKind,
    pub(crate) cost: Cost,
    pub(crate) payload: Slot,
}

impl Entry {
    /// Notes that the payload is being read, and says so.
    fn fetch(&mut self, run: &RunId, base_model: String) -> Fetch {
        self.payload = Slot::Reading;
        Fetch::Payload { run: run.clone(), request: self.request.clone(), kind: self.kind, base_model }
    }
}

/// How a request ends that never reached the worker, or whose worker gave it up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Doom {
    Cancelled,
    Failed(OpError),
}

/// A request to end, and the lease under which that is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doomed {
    pub(crate) request: RequestId,
    pub(crate) fence: Fence,
    pub(crate) doom: Doom,
}

/// What a write about a request names, so that it is refused once the request has passed to another worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fence {
    /// The epoch of the run's lease.
    Run(RunId, i64),
    /// Which of the sample's claims it is.
    Sample(i64),
}

/// Bytes or rows to read.
#[derive(Debug, PartialEq)]
pub(crate) enum Fetch {
    /// The payload of a request of a run, or of its replay.
    Payload { run: RunId, request: RequestId, kind: RequestKind, base_model: String },
    /// The payload of a sample.
    Sample { request: RequestId },
    /// The operations to replay, for a lease of this epoch.
    History { run: RunId, epoch: i64 },
    /// How much of a tenant's pace is left.
    Pace { tenant: TenantId },
}

/// What follows from a change.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// Ends to record, in this order.
    pub(crate) doomed: Vec<Doomed>,
    /// Runs that could not be restored: to be recorded before `doomed`.
    pub(crate) lost: Vec<(RunId, i64, OpError)>,
    /// Leases to give back, of runs of which nothing is held any more.
    pub(crate) released: Vec<(RunId, i64)>,
    /// Samples to give back, with the numbers of their claims.
    pub(crate) unclaimed: Vec<(RequestId, i64)>,
    /// A suspect to be started alone, once that is noted.
    pub(crate) alone: Option<RequestId>,
    /// What to read.
    pub(crate) fetches: Vec<Fetch>,
    /// Something is ready for the worker.
    pub(crate) ready: bool,
    /// More can be taken from the store.
    pub(crate) room: bool,
}

/// A request that the worker holds.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) kind: RequestKind,
    /// The run, unless it is a sample.
    pub(crate) run: Option<RunId>,
    pub(crate) sampling_session: Option<SamplingSessionId>,
    pub(crate) fence: Fence,
    pub(crate) seq_id: i64,
    pub(crate) replay: bool,
    pub(crate) cost: Cost,
    pub(crate) started: Timestamp,
}

/// What may start next: the head of a run, or a sample by its arrival.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Run(RunId),
    Sample(i64),
}

/// A session with work, or that may get some.
#[derive(Debug, Default)]
struct Load {
    /// It accepts nothing more; it goes once nothing is pending.
    ending: bool,
    /// Requests that wait or are held by the worker, replays included.
    pending: usize,
    runs: BTreeSet<RunId>,
    snapshots: BTreeSet<String>,
}

/// An in-memory snapshot of a run.
#[derive(Debug)]
struct Snapshot {
    run: RunId,
    /// Whether the worker has it in memory: not before a replay has made it again.
    ready: bool,
    /// Where it was written to.
    dir: Option<PathBuf>,
    /// When it was taken, as [`Queue::uses`] counts.
    made: u64,
    /// Grows with every use, to tell which was used least recently.
    used: u64,
    /// Samples that wait for it, by arrival.
    waiting: BTreeSet<i64>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    sessions: BTreeMap<SessionId, Load>,
    runs: HashMap<RunId, RunQueue>,
    /// Runs whose head may be startable, in the order in which they became so.
    ready_runs: VecDeque<RunId>,
    samples: BTreeMap<i64, Sample>,
    arrivals: HashMap<RequestId, i64>,
    ready_samples: BTreeSet<i64>,
    /// How many samples are here, waiting or executed.
    open_samples: BTreeMap<TenantId, u64>,
    snapshots: HashMap<String, Snapshot>,
    flights: HashMap<RequestId, Flight>,
    /// Holds back what its tenant's pace does not allow yet.
    throttle: Throttle<Turn>,
    suspects: Suspects,
    signals: VecDeque<WorkItem>,
    /// Counts uses of snapshots.
    uses: u64,
    /// Tokens of executed work after which a run is saved.
    save_after: u64,
    held_bytes: usize,
    out: Out,
}

impl Queue {
    /// An empty queue that keeps tenants to their paces.
    pub(crate) fn new(policies: Policies, save_after: u64) -> Self {
        Self { throttle: Throttle::new(policies), save_after, ..Self::default() }
    }

    /// What follows from the changes since the last call.
    pub(crate) fn take_out(&mut self) -> Out {
        let mut out = std::mem::take(&mut self.out);
        out.ready |= self.suspects_can_go_on();
        out
    }

    /// Requests that wait, and requests that the worker holds.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let waiting = self.samples.len() + self.runs.values().map(RunQueue::waiting).sum::<usize>();
        (waiting as u64, self.flights.len() as u64)
    }

    /// Whether anything of a session is here.
    pub(crate) fn has_session(&self, session: &SessionId) -> bool {
        self.sessions.contains_key(session)
    }

    /// Ends a session. With `cancel` everything that waits is given up; without, what can still be
    /// executed is, and only requests behind a gap fail, since the gap can't close any more.
    pub(crate) fn end_session(&mut self, session: &SessionId, cancel: bool) {
        let Some(load) = self.sessions.get_mut(session) else { return };
        load.ending = true;
        for run in load.runs.clone() {
            self.end_run(session, &run, cancel);
        }
        if cancel {
            self.cancel_samples_of(session);
        }
        self.release_ended(session);
    }

    /// Gives up what waits of a session that expired. Its runs are idle from now on, so that they are saved and let go
    /// of: should the session come back, they are restored.
    pub(crate) fn suspend_session(&mut self, session: &SessionId) {
        let Some(load) = self.sessions.get(session) else { return };
        for id in load.runs.clone() {
            self.end_run(session, &id, true);
            if let Some(run) = self.runs.get_mut(&id) {
                run.idle_since = Some(Timestamp(i64::MIN));
            }
        }
        self.cancel_samples_of(session);
        self.release_ended(session);
    }

    /// Once an ended session has nothing pending, the worker forgets what it held for it.
    fn release_ended(&mut self, session: &SessionId) {
        let is_over = |load: &Load| load.ending || (load.runs.is_empty() && load.snapshots.is_empty());
        if !self.sessions.get(session).is_some_and(|load| load.pending == 0 && is_over(load)) {
            return;
        }
        let Some(load) = self.sessions.remove(session) else { return };
        for id in load.runs {
            if let Some(run) = self.runs.remove(&id) {
                self.out.released.push((id.clone(), run.epoch()));
                self.forget_replays(run.history);
            }
            self.signal(WorkItem::UnloadRun(id));
        }
        for key in load.snapshots {
            self.snapshots.remove(&key);
            self.signal(WorkItem::DropSnapshot(key));
        }
    }

    /// A snapshot of a run: taken now (`ready`), or to be made again by a replay.
    pub(crate) fn add_snapshot(&mut self, session: &SessionId, key: String, run: RunId, ready: bool) {
        self.sessions.entry(session.clone()).or_default().snapshots.insert(key.clone());
        let snapshot = self.snapshots.entry(key).or_insert(Snapshot {
            run,
            ready,
            dir: None,
            made: 0,
            used: 0,
            waiting: BTreeSet::new(),
        });
        if ready {
            self.uses += 1;
            (snapshot.ready, snapshot.dir, snapshot.made, snapshot.used) = (true, None, self.uses, self.uses);
            for arrival in std::mem::take(&mut snapshot.waiting) {
                self.prepare_sample(arrival);
            }
        }
    }

    /// All that the worker may do now: signals, what was held back until now, then heads of runs, then samples by
    /// arrival.
    pub(crate) fn take(&mut self, now: Timestamp) -> Vec<WorkItem> {
        let mut items: Vec<WorkItem> = self.signals.drain(..).collect();
        self.look_at_suspects(now);
        if self.suspects_hold_back() {
            return items;
        }
        if let Some(work) = self.start_suspect(now) {
            items.push(WorkItem::Start(work));
        }
        if self.suspects_hold_back() {
            return items;
        }
        while let Some(turn) = self.throttle.next_due(now) {
            self.out.room = true;
            items.extend(self.start(&turn, now).map(WorkItem::Start));
        }
        while let Some(run) = self.ready_runs.pop_front() {
            items.extend(self.start_in_pace(Turn::Run(run), now).map(WorkItem::Start));
        }
        while let Some(arrival) = self.ready_samples.pop_first() {
            items.extend(self.start_in_pace(Turn::Sample(arrival), now).map(WorkItem::Start));
        }
        let unread = self.throttle.take_unread();
        self.out.fetches.extend(unread.into_iter().map(|tenant| Fetch::Pace { tenant }));
        items
    }

    /// How much of a tenant's pace is left, from which `written` tokens of requests that started here were taken.
    pub(crate) fn tell_pace(&mut self, tenant: &TenantId, level: Option<Level>, written: u64, now: Timestamp) {
        self.throttle.tell(tenant, level, written, now);
        self.out.ready |= self.is_ready(now);
    }

    /// Starts what may start, unless its tenant's pace holds it back.
    fn start_in_pace(&mut self, turn: Turn, now: Timestamp) -> Option<Work> {
        let (tenant, tokens) = match &turn {
            Turn::Run(run) => self.head_cost(run)?,
            Turn::Sample(arrival) => {
                let sample = self.samples.get(arrival)?;
                (sample.tenant.clone(), sample.cost.tokens)
            }
        };
        let turn = self.throttle.offer(&tenant, turn, tokens, now)?;
        self.start(&turn, now)
    }

    fn start(&mut self, turn: &Turn, now: Timestamp) -> Option<Work> {
        if self.is_held_as_suspect(turn) {
            return None;
        }
        self.start_now(turn, now)
    }

    fn start_now(&mut self, turn: &Turn, now: Timestamp) -> Option<Work> {
        match turn {
            Turn::Run(run) => self.start_head(run, now),
            Turn::Sample(arrival) => self.start_sample(*arrival, now),
        }
    }

    /// A request that the worker holds.
    pub(crate) fn flight(&self, request: &RequestId) -> Option<&Flight> {
        self.flights.get(request)
    }

    /// Why a request of the tenant waits that could start otherwise.
    pub(crate) fn pause(&self, tenant: &TenantId, request: &RequestId, now: Timestamp) -> Option<Pause> {
        if self.flights.contains_key(request) { None } else { self.throttle.pause(tenant, now) }
    }

    /// Tenants whose requests are held back.
    pub(crate) fn paused_tenants(&self) -> Vec<TenantId> {
        self.throttle.paused_tenants()
    }

    /// When something that is held back may start.
    pub(crate) fn wakes_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.suspects_hold_back() {
            return None;
        }
        [self.throttle.wakes_at(now), self.suspects_due_at(now)].into_iter().flatten().min()
    }

    /// Whether a request of the tenant is known to be unfinished. What waits in a run is not looked for.
    pub(crate) fn has_pending(&self, tenant: &TenantId, request: &RequestId) -> bool {
        if let Some(flight) = self.flights.get(request) {
            return !flight.replay && flight.tenant == *tenant;
        }
        let sample = self.arrivals.get(request).and_then(|arrival| self.samples.get(arrival));
        sample.is_some_and(|sample| sample.tenant == *tenant)
    }

    /// Whether [`Self::take`] may have something to give.
    pub(crate) fn is_ready(&self, now: Timestamp) -> bool {
        if self.suspects_hold_back() {
            return !self.signals.is_empty();
        }
        let listed = !(self.signals.is_empty() && self.ready_runs.is_empty() && self.ready_samples.is_empty());
        listed || self.suspects_can_go_on() || self.wakes_at(now).is_some_and(|at| at <= now)
    }

    /// The worker is done with a request. `None` when it held no such request, as after a cancellation.
    pub(crate) fn finish(&mut self, request: &RequestId, error: Option<&OpError>) -> Option<Flight> {
        let flight = self.flights.remove(request)?;
        match &flight.run {
            Some(run) => self.finish_of_run(run, &flight, error),
            None => self.sample_gone(&flight.tenant),
        }
        self.settled(&flight.session);
        Some(flight)
    }

    /// Forgets a sample that was given up, whether it waits or is executed.
    pub(crate) fn forget_sample(&mut self, request: &RequestId) {
        if let Some(arrival) = self.arrivals.get(request).copied() {
            self.remove_sample(arrival);
        } else if self.flights.get(request).is_some_and(|flight| flight.sampling_session.is_some())
            && let Some(flight) = self.flights.remove(request)
        {
            self.sample_gone(&flight.tenant);
            self.signal(WorkItem::Cancel(request.clone()));
            self.settled(&flight.session);
        }
    }

    /// One more request of a session is pending.
    fn pending(&mut self, session: &SessionId) {
        self.sessions.entry(session.clone()).or_default().pending += 1;
    }

    /// One request less of a session is pending.
    fn settled(&mut self, session: &SessionId) {
        if let Some(load) = self.sessions.get_mut(session) {
            load.pending = load.pending.saturating_sub(1);
        }
        self.release_ended(session);
    }

    fn signal(&mut self, item: WorkItem) {
        self.signals.push_back(item);
        self.out.ready = true;
    }

    /// Whether a payload of this size is kept as it was read, too.
    pub(crate) fn keeps_decoded(&self, bytes: usize) -> bool {
        self.held_bytes + bytes <= DECODED_BYTES
    }

    /// Keeps a payload in memory while there is room.
    fn hold(&mut self, payload: Option<(Bytes, Decoded)>) -> Slot {
        match payload {
            Some((bytes, decoded)) if self.held_bytes + bytes.len() <= HELD_BYTES => {
                let decoded = if self.keeps_decoded(bytes.len()) { decoded } else { Decoded::default() };
                self.held_bytes += bytes.len();
                Slot::Held(bytes, decoded)
            }
            _ => Slot::Stored,
        }
    }

    /// Forgets a payload's bytes in the account of what is held.
    fn released(&mut self, slot: &Slot) {
        if let Slot::Held(bytes, _) = slot {
            self.held_bytes = self.held_bytes.saturating_sub(bytes.len());
        }
    }

    fn launch(
        &mut self,
        request: RequestId,
        flight: Flight,
        seq_id: i64,
        sampling: Option<&Arc<SamplingSession>>,
        (payload, decoded): (Bytes, Decoded),
    ) -> Work {
        let sampling_session = sampling.map(|session| self.with_source(session));
        let work = Work {
            request: request.clone(),
            tenant: flight.tenant.clone(),
            run: flight.run.clone(),
            sampling_session,
            kind: flight.kind,
            seq_id,
            payload,
            decoded,
            replay: flight.replay,
        };
        if !flight.replay {
            self.throttle.charge(&flight.tenant, flight.cost.tokens, flight.started);
        }
        self.flights.insert(request, flight);
        work
    }
}
