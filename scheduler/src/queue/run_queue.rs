//! Requests of one run: strictly by seq_id, one at a time, after a replay if the run's memory was lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use trainyard_protocol::{OpError, RequestId, RunMemory, SessionId, TenantId};

use super::request::QueuedRequest;
use crate::Timestamp;

/// A known position in a run's order that execution has yet to pass.
#[derive(Debug)]
pub(super) enum PendingPlace {
    /// The request must be executed.
    Work(QueuedRequest),
    /// The request ended without being executed.
    Consumed,
}

/// An operation to execute again.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) seq_id: i64,
    pub(crate) entry: QueuedRequest,
    /// Keys of the in-memory snapshots that the operation takes.
    pub(crate) snapshots: Vec<String>,
}

/// State of the worker's memory with respect to the run's earlier operations.
#[derive(Debug)]
pub(crate) enum History {
    /// The memory contains their effects.
    Loaded,
    /// The memory lacks their effects, and nothing has asked for a replay yet.
    Lost,
    /// The operations to replay are being listed.
    Reading,
    /// These operations must still be replayed.
    Replaying(VecDeque<Replayed>),
}

/// The operation of a run that the worker executes.
#[derive(Debug)]
pub(super) struct ExecutingHead {
    /// Whether it is a client's request that executes for the first time: neither a replay nor maintenance.
    pub(super) is_request: bool,
    pub(super) replay: bool,
    pub(super) snapshots: Vec<String>,
}

/// Requests and state of a run.
#[derive(Debug)]
pub(crate) struct RunQueue {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) base_model: String,
    /// Epoch of the lease.
    epoch: i64,
    /// First position whose request has yet to end.
    pub(super) next_seq: i64,
    pub(super) pending: BTreeMap<i64, PendingPlace>,
    /// Requests that are being cancelled: the store may still list them as unfinished.
    pub(super) cancelling: BTreeSet<RequestId>,
    /// Number of cancellations that the store has decided on.
    pub(super) cancelled: u64,
    pub(super) executing: Option<ExecutingHead>,
    /// Whether the run is among the ready runs.
    pub(super) listed: bool,
    pub(super) history: History,
    /// Error of every request, once the run can't be used.
    pub(super) failure: Option<OpError>,
    /// Maintenance operations before the next request.
    pub(super) maintenance: VecDeque<QueuedRequest>,
    /// Tokens executed since the run was saved: the cost of a replay.
    pub(super) replay_cost: u64,
    /// Time when a replay began that is still unsaved.
    pub(super) unsaved_replay: Option<Timestamp>,
    /// Duration of the last save.
    pub(super) save_took: Duration,
    /// Memory of the run on the worker.
    pub(super) memory: RunMemory,
    /// Time when the run was admitted to the worker's memory.
    pub(super) loaded_at: Option<Timestamp>,
    /// Additional bytes that the next or executed operation takes.
    pub(super) reserved: u64,
    /// Whether all snapshots leave the memory once they are saved, before the next request.
    pub(super) spilling: bool,
    /// Time when the run last began to be unloaded for another one, or when its snapshots could not be saved.
    pub(super) unload_started: Option<Timestamp>,
    /// Time since when the run has been without requests.
    pub(super) idle_since: Option<Timestamp>,
    /// Whether the lease is released once the run is saved, unless a request arrives before.
    pub(super) releasing: bool,
    /// Whether the lease is released once the run is saved; pending requests are left to the next worker.
    pub(super) handing_over: bool,
}

impl RunQueue {
    /// Creates a run whose first `next_seq` requests have ended.
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

    /// Sets a prediction of the run's memory.
    pub(crate) fn with_memory(self, memory: RunMemory) -> Self {
        Self { memory, ..self }
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    fn is_executing_request(&self) -> bool {
        self.executing.as_ref().is_some_and(|executing| executing.is_request)
    }

    /// Returns the first position behind the request that is being executed.
    fn first_waiting(&self) -> i64 {
        self.next_seq + i64::from(self.is_executing_request())
    }

    /// Returns whether a position in the order is already known.
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

    /// Returns the next operation; `None` if its request is missing or the history is not loaded.
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

    /// Returns the operations to replay in order or, if there are none, the pending requests in order.
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

    /// Returns whether only maintenance comes before a request.
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

    /// Returns whether nothing is pending or in execution.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.executing.is_none() && self.maintenance.is_empty()
    }

    /// Returns whether the next request has arrived.
    pub(super) fn has_next(&self) -> bool {
        matches!(self.pending.get(&self.next_seq), Some(PendingPlace::Work(_)))
    }

    /// Returns the first position whose effects are missing from the worker's memory.
    fn next_executed(&self) -> i64 {
        match &self.history {
            History::Replaying(replays) => replays.front().map_or(self.next_seq, |first| first.seq_id),
            _ => self.next_seq,
        }
    }

    /// Takes the head with its position and marks it as executing.
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

    /// Takes all pending requests at position `from` or later.
    pub(super) fn take_pending(&mut self, from: i64) -> Vec<QueuedRequest> {
        let taken = self.pending.split_off(&from).into_values();
        taken
            .filter_map(|place| match place {
                PendingPlace::Work(entry) => Some(entry),
                PendingPlace::Consumed => None,
            })
            .collect()
    }

    /// Returns the first position whose request is missing.
    pub(super) fn first_gap(&self) -> i64 {
        let mut seq = self.first_waiting();
        while self.pending.contains_key(&seq) {
            seq += 1;
        }
        seq
    }
}
