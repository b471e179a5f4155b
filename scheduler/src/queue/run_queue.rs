//! The requests of one run: strictly by seq_id, one at a time, after a replay when the run's memory was lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use trainyard_protocol::{OpError, RequestId, RunMemory, SessionId, TenantId};

use super::request::QueuedRequest;
use crate::Timestamp;

/// A place in a run's order that is known and not yet passed.
#[derive(Debug)]
pub(super) enum PendingPlace {
    /// To be executed.
    Work(QueuedRequest),
    /// Ended without being executed.
    Consumed,
}

/// An operation to execute again.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) seq_id: i64,
    pub(crate) entry: QueuedRequest,
    /// Keys of the in-memory snapshots that it takes.
    pub(crate) snapshots: Vec<String>,
}

/// Whether the worker's memory holds the effects of the run's earlier operations.
#[derive(Debug)]
pub(crate) enum History {
    /// It does.
    Loaded,
    /// It does not, and nothing has asked for a replay yet.
    Lost,
    /// The operations to replay are being listed.
    Reading,
    /// These operations are still to be replayed.
    Replaying(VecDeque<Replayed>),
}

/// The operation of a run that the worker has.
#[derive(Debug)]
pub(super) struct ExecutingHead {
    /// A client's request that executes for the first time: neither a replay nor maintenance.
    pub(super) is_request: bool,
    pub(super) replay: bool,
    pub(super) snapshots: Vec<String>,
}

/// A run's requests.
#[derive(Debug)]
pub(crate) struct RunQueue {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) base_model: String,
    /// Of the lease.
    epoch: i64,
    /// The first place whose request has not ended.
    pub(super) next_seq: i64,
    pub(super) pending: BTreeMap<i64, PendingPlace>,
    /// Requests that are being cancelled: the store may still list them as unfinished.
    pub(super) cancelling: BTreeSet<RequestId>,
    /// Counts cancellations that the store has decided on.
    pub(super) cancelled: u64,
    pub(super) executing: Option<ExecutingHead>,
    /// It is among the ready runs.
    pub(super) listed: bool,
    pub(super) history: History,
    /// Every request fails with this, once the run can't be used.
    pub(super) failure: Option<OpError>,
    /// The scheduler's own operations before the next request.
    pub(super) maintenance: VecDeque<QueuedRequest>,
    /// Tokens executed since the run was saved: what a replay would cost.
    pub(super) replay_cost: u64,
    /// When the replay began that is not saved yet.
    pub(super) unsaved_replay: Option<Timestamp>,
    /// How long its last save took.
    pub(super) save_took: Duration,
    /// What it takes of the worker's memory.
    pub(super) memory: RunMemory,
    /// When it was admitted to the worker's memory.
    pub(super) loaded_at: Option<Timestamp>,
    /// Bytes that the operation which is next, or is executed, takes beyond that.
    pub(super) reserved: u64,
    /// All of its snapshots leave the memory once they are saved, before its next request.
    pub(super) spilling: bool,
    /// When it last began to be unloaded for another run, or when its snapshots could not be saved.
    pub(super) unload_started: Option<Timestamp>,
    /// Since when it has had no request.
    pub(super) idle_since: Option<Timestamp>,
    /// Its lease is released once it is saved, unless a request arrives before.
    pub(super) releasing: bool,
    /// Its lease is released once it is saved; pending requests are left to the next worker.
    pub(super) handing_over: bool,
}

impl RunQueue {
    /// A run whose first `next_seq` requests have ended.
    pub(crate) fn new(
        tenant: TenantId,
        session: SessionId,
        base_model: String,
        epoch: i64,
        next_seq: i64,
        history: History,
    ) -> Self {
        Self {
            tenant,
            session,
            base_model,
            epoch,
            next_seq,
            pending: BTreeMap::new(),
            cancelling: BTreeSet::new(),
            cancelled: 0,
            executing: None,
            listed: false,
            history,
            failure: None,
            maintenance: VecDeque::new(),
            replay_cost: 0,
            unsaved_replay: None,
            save_took: Duration::ZERO,
            memory: RunMemory::default(),
            loaded_at: None,
            reserved: 0,
            spilling: false,
            unload_started: None,
            idle_since: None,
            releasing: false,
            handing_over: false,
        }
    }

    /// The same with a prediction of its memory.
    pub(crate) fn with_memory(self, memory: RunMemory) -> Self {
        Self { memory, ..self }
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    fn is_executing_request(&self) -> bool {
        self.executing.as_ref().is_some_and(|executing| executing.is_request)
    }

    /// The first place behind the request that is being executed.
    fn first_waiting(&self) -> i64 {
        self.next_seq + i64::from(self.is_executing_request())
    }

    /// Whether a place of the order is known already.
    pub(super) fn knows(&self, seq_id: i64) -> bool {
        seq_id < self.first_waiting() || self.pending.contains_key(&seq_id)
    }

    pub(super) fn pending_count(&self) -> usize {
        self.pending.values().filter(|place| matches!(place, PendingPlace::Work(_))).count()
    }

    pub(super) fn skip_consumed(&mut self) {
        while matches!(self.pending.get(&self.next_seq), Some(PendingPlace::Consumed)) {
            self.pending.remove(&self.next_seq);
            self.next_seq += 1;
        }
    }

    /// The operation that comes next; `None` when its request has not arrived or the history is not loaded.
    pub(super) fn head(&mut self) -> Option<&mut QueuedRequest> {
        match &mut self.history {
            History::Lost | History::Reading => None,
            _ if !self.maintenance.is_empty() => self.maintenance.front_mut(),
            History::Replaying(replays) => replays.front_mut().map(|replayed| &mut replayed.entry),
            History::Loaded if self.handing_over => None,
            History::Loaded => match self.pending.get_mut(&self.next_seq) {
                Some(PendingPlace::Work(entry)) => Some(entry),
                _ => None,
            },
        }
    }

    /// The operations to replay in their order or, when there are none, the pending requests in theirs.
    pub(super) fn upcoming(&mut self) -> impl Iterator<Item = &mut QueuedRequest> {
        let from = self.first_waiting();
        let (replays, pending) = match &mut self.history {
            History::Replaying(replays) => (Some(replays.iter_mut()), None),
            History::Lost | History::Reading => (None, None),
            History::Loaded => (None, Some(self.pending.range_mut(from..))),
        };
        let replays = replays.into_iter().flatten().map(|replayed| &mut replayed.entry);
        let pending = pending.into_iter().flatten().filter_map(|(_, place)| match place {
            PendingPlace::Work(entry) => Some(entry),
            PendingPlace::Consumed => None,
        });
        replays.chain(pending)
    }

    /// Whether nothing but maintenance is before a request.
    pub(super) fn is_due(&self, request: &RequestId) -> bool {
        match &self.history {
            _ if self.executing.is_some() => false,
            History::Replaying(replays) => replays.front().is_some_and(|first| first.entry.request == *request),
            _ => match self.pending.get(&self.next_seq) {
                Some(PendingPlace::Work(entry)) => entry.request == *request,
                _ => false,
            },
        }
    }

    /// Whether nothing is pending and nothing is executed.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.executing.is_none() && self.maintenance.is_empty()
    }

    /// Whether the request that comes next has arrived.
    pub(super) fn has_next(&self) -> bool {
        matches!(self.pending.get(&self.next_seq), Some(PendingPlace::Work(_)))
    }

    /// The first place whose effects the worker's memory does not hold.
    fn next_executed(&self) -> i64 {
        match &self.history {
            History::Replaying(replays) => replays.front().map_or(self.next_seq, |first| first.seq_id),
            _ => self.next_seq,
        }
    }

    /// Takes the head with its place and marks it as executing.
    pub(super) fn take_head(&mut self) -> Option<(i64, QueuedRequest)> {
        if let Some(entry) = self.maintenance.pop_front() {
            self.executing = Some(ExecutingHead { is_request: false, replay: false, snapshots: Vec::new() });
            return Some((self.next_executed() - 1, entry));
        }
        if let History::Replaying(replays) = &mut self.history {
            let Replayed { seq_id, entry, snapshots } = replays.pop_front()?;
            self.executing = Some(ExecutingHead { is_request: false, replay: true, snapshots });
            return Some((seq_id, entry));
        }
        self.spilling = false;
        match self.pending.remove(&self.next_seq)? {
            PendingPlace::Work(entry) => {
                self.executing = Some(ExecutingHead { is_request: true, replay: false, snapshots: Vec::new() });
                Some((self.next_seq, entry))
            }
            PendingPlace::Consumed => None,
        }
    }

    /// Takes all pending requests whose place is `from` or later.
    pub(super) fn take_pending(&mut self, from: i64) -> Vec<QueuedRequest> {
        let taken = self.pending.split_off(&from).into_values();
        taken
            .filter_map(|place| match place {
                PendingPlace::Work(entry) => Some(entry),
                PendingPlace::Consumed => None,
            })
            .collect()
    }

    /// The first place that has not arrived.
    pub(super) fn first_gap(&self) -> i64 {
        let mut seq = self.first_waiting();
        while self.pending.contains_key(&seq) {
            seq += 1;
        }
        seq
    }
}
