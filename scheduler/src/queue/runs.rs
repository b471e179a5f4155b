//! Runs: strictly by seq_id, one request at a time, after a replay when the run's memory was lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use super::{Doom, Doomed, Entry, Fence, Fetch, Flight, HELD_BYTES, Queue, Slot, Turn};
use crate::quotas::Cost;
use crate::suspicion::Suspicion;
use crate::{Decoded, RequestKind, Timestamp, Work, WorkItem};

/// How many requests of a run have their payloads in memory: a pass, its step, and the same once more.
const READ_AHEAD: usize = 4;
/// While no more than this many bytes are held, payloads are read before their turn.
const READ_AHEAD_BYTES: usize = HELD_BYTES / 2;

/// A place in a run's order.
#[derive(Debug)]
enum Parked {
    /// To be executed.
    Work(Entry),
    /// Ended without being executed.
    Consumed,
}

/// An operation to execute again.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) seq_id: i64,
    pub(crate) entry: Entry,
    /// Keys of the in-memory snapshots that it takes.
    pub(crate) snapshots: Vec<String>,
}

/// Whether the worker holds what earlier operations made of the run.
#[derive(Debug)]
pub(crate) enum History {
    /// It does.
    Loaded,
    /// A restart lost it.
    Lost,
    /// The operations to replay are being listed.
    Reading,
    /// These operations are still to be replayed.
    Replaying(VecDeque<Replayed>),
}

#[derive(Debug)]
pub(super) struct InFlight {
    /// Whether it is a request of its own: no replay, and nothing that the scheduler asked for.
    is_request: bool,
    replay: bool,
    snapshots: Vec<String>,
}

/// A run's requests.
#[derive(Debug)]
pub(crate) struct RunQueue {
    tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) base_model: String,
    /// Of the lease.
    epoch: i64,
    /// The first place whose request has not ended.
    next_seq: i64,
    parked: BTreeMap<i64, Parked>,
    /// Requests that are being cancelled: the store may still say that they wait.
    cancelling: BTreeSet<RequestId>,
    /// Counts cancellations that the store knows of.
    cancelled: u64,
    pub(super) in_flight: Option<InFlight>,
    /// It is among the ready runs.
    listed: bool,
    pub(super) history: History,
    /// What every request is told, once the run can't be used.
    pub(super) failure: Option<OpError>,
    /// What to do before the next request, on the scheduler's own account.
    pub(super) upkeep: VecDeque<Entry>,
    /// What a replay would cost: tokens executed since the run was saved.
    pub(super) replay_cost: u64,
    /// Since when nothing has been asked of it.
    pub(super) idle_since: Option<Timestamp>,
    /// Its lease is to be given back once it is saved, unless something is asked of it before.
    pub(super) leaving: bool,
    /// Its lease is to be given back once it is saved; what waits is left to the next worker.
    pub(super) moving: bool,
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
            parked: BTreeMap::new(),
            cancelling: BTreeSet::new(),
            cancelled: 0,
            in_flight: None,
            listed: false,
            history,
            failure: None,
            upkeep: VecDeque::new(),
            replay_cost: 0,
            idle_since: None,
            leaving: false,
            moving: false,
        }
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Whether a place of the order is known already.
    fn knows(&self, seq_id: i64) -> bool {
        let executing = self.in_flight.as_ref().is_some_and(|flight| flight.is_request);
        seq_id < self.next_seq + i64::from(executing) || self.parked.contains_key(&seq_id)
    }

    pub(super) fn waiting(&self) -> usize {
        self.parked.values().filter(|parked| matches!(parked, Parked::Work(_))).count()
    }

    fn skip_consumed(&mut self) {
        while matches!(self.parked.get(&self.next_seq), Some(Parked::Consumed)) {
            self.parked.remove(&self.next_seq);
            self.next_seq += 1;
        }
    }

    /// The request that comes next, unless it has not arrived or the history is not at hand.
    fn head(&mut self) -> Option<&mut Entry> {
        match &mut self.history {
            History::Replaying(replays) => replays.front_mut().map(|replayed| &mut replayed.entry),
            History::Lost | History::Reading => None,
            History::Loaded if !self.upkeep.is_empty() => self.upkeep.front_mut(),
            History::Loaded if self.moving => None,
            History::Loaded => match self.parked.get_mut(&self.next_seq) {
                Some(Parked::Work(entry)) => Some(entry),
                _ => None,
            },
        }
    }

    /// The requests that wait, in their order, or those that are to be executed again before any of these.
    fn coming(&mut self) -> impl Iterator<Item = &mut Entry> {
        let executing = self.in_flight.as_ref().is_some_and(|flight| flight.is_request);
        let (replays, parked) = match &mut self.history {
            History::Replaying(replays) => (Some(replays.iter_mut()), None),
            History::Lost | History::Reading => (None, None),
            History::Loaded => (None, Some(self.parked.range_mut(self.next_seq + i64::from(executing)..))),
        };
        let replays = replays.into_iter().flatten().map(|replayed| &mut replayed.entry);
        let parked = parked.into_iter().flatten().filter_map(|(_, parked)| match parked {
            Parked::Work(entry) => Some(entry),
            Parked::Consumed => None,
        });
        replays.chain(parked)
    }

    /// Whether nothing but upkeep is before a request.
    fn is_due(&self, request: &RequestId) -> bool {
        match &self.history {
            _ if self.in_flight.is_some() => false,
            History::Replaying(replays) => replays.front().is_some_and(|first| first.entry.request == *request),
            _ => match self.parked.get(&self.next_seq) {
                Some(Parked::Work(entry)) => entry.request == *request,
                _ => false,
            },
        }
    }

    /// Whether nothing waits and nothing is executed.
    pub(super) fn is_idle(&self) -> bool {
        self.parked.is_empty() && self.in_flight.is_none() && self.upkeep.is_empty()
    }

    /// Whether the request that comes next has arrived.
    fn head_waits(&self) -> bool {
        matches!(self.parked.get(&self.next_seq), Some(Parked::Work(_)))
    }

    /// Takes the head with its place, and notes it as in flight.
    fn take_head(&mut self) -> Option<(i64, Entry)> {
        if let History::Replaying(replays) = &mut self.history {
            let Replayed { seq_id, entry, snapshots } = replays.pop_front()?;
            self.in_flight = Some(InFlight { is_request: false, replay: true, snapshots });
            return Some((seq_id, entry));
        }
        if let Some(entry) = self.upkeep.pop_front() {
            self.in_flight = Some(InFlight { is_request: false, replay: false, snapshots: Vec::new() });
            return Some((self.next_seq - 1, entry));
        }
        match self.parked.remove(&self.next_seq)? {
            Parked::Work(entry) => {
                self.in_flight = Some(InFlight { is_request: true, replay: false, snapshots: Vec::new() });
                Some((self.next_seq, entry))
            }
            Parked::Consumed => None,
        }
    }

    /// Takes all waiting requests whose place is `from` or later.
    fn take_waiting(&mut self, from: i64) -> Vec<Entry> {
        let taken = self.parked.split_off(&from);
        taken
            .into_values()
            .filter_map(|parked| match parked {
                Parked::Work(entry) => Some(entry),
                Parked::Consumed => None,
            })
            .collect()
    }

    /// The first place that has not arrived.
    fn first_gap(&self) -> i64 {
        let executing = self.in_flight.as_ref().is_some_and(|flight| flight.is_request);
        let mut seq = self.next_seq + i64::from(executing);
        while self.parked.contains_key(&seq) {
            seq += 1;
        }
        seq
    }
}

impl Queue {
    /// A run whose lease this worker has.
    pub(crate) fn add_run(&mut self, id: RunId, run: RunQueue) {
        self.sessions.entry(run.session.clone()).or_default().runs.insert(id.clone());
        self.runs.insert(id, run);
    }

    /// The first place of a run's order that has not ended; `None` without its lease.
    pub(crate) fn next_seq(&self, id: &RunId) -> Option<i64> {
        self.runs.get(id).map(|run| run.next_seq)
    }

    /// Whether a sample is here, waiting or executed.
    pub(crate) fn has_sample(&self, request: &RequestId) -> bool {
        self.arrivals.contains_key(request) || self.flights.contains_key(request)
    }

    /// The place from which a run's requests are to be read, and how many cancellations the store knew of: what was read
    /// before another one may be wrong.
    pub(crate) fn reads_from(&self, id: &RunId) -> Option<(i64, u64)> {
        self.runs.get(id).map(|run| (run.next_seq, run.cancelled))
    }

    /// The store has decided on a cancellation.
    pub(crate) fn cancellation_stands(&mut self, id: &RunId, request: &RequestId) {
        if let Some(run) = self.runs.get_mut(id) {
            run.cancelling.remove(request);
            run.cancelled += 1;
        }
    }

    /// The runs whose leases this worker has.
    pub(crate) fn run_ids(&self) -> Vec<RunId> {
        let mut ids: Vec<RunId> = self.runs.keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// The sessions of which something is here.
    pub(crate) fn session_ids(&self) -> Vec<SessionId> {
        self.sessions.keys().cloned().collect()
    }

    /// The runs of a session whose leases this worker has.
    pub(crate) fn runs_of_session(&self, session: &SessionId) -> Vec<RunId> {
        self.sessions.get(session).map(|load| load.runs.iter().cloned().collect()).unwrap_or_default()
    }

    /// Forgets a run whose lease has passed to another, and what is executed of it. Nothing ends by that.
    pub(crate) fn lose_lease(&mut self, id: &RunId, epoch: i64) {
        if self.runs.get(id).is_none_or(|run| run.epoch != epoch) {
            return;
        }
        let Some(mut run) = self.runs.remove(id) else { return };
        self.throttle.forget(&run.tenant, &Turn::Run(id.clone()));
        let waiting = run.take_waiting(i64::MIN);
        for entry in &waiting {
            self.released(&entry.payload);
        }
        self.forget_replays(std::mem::replace(&mut run.history, History::Loaded));
        let before = self.flights.len();
        self.flights.retain(|_, flight| flight.run.as_ref() != Some(id));
        let gone = waiting.len() + before - self.flights.len();
        let keys: Vec<String> =
            self.snapshots.iter().filter(|(_, snapshot)| snapshot.run == *id).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.forget_snapshot(&run.session, &key);
        }
        if let Some(load) = self.sessions.get_mut(&run.session) {
            load.runs.remove(id);
            load.pending = load.pending.saturating_sub(gone);
        }
        self.signal(WorkItem::UnloadRun(id.clone()));
        self.release_ended(&run.session);
    }

    /// Forgets what is left of an older lease of a run.
    pub(crate) fn lose_lease_before(&mut self, id: &RunId, epoch: i64) {
        if let Some(old) = self.runs.get(id).map(RunQueue::epoch).filter(|old| *old < epoch) {
            self.lose_lease(id, old);
        }
    }

    /// Forgets all runs and samples: this worker was taken for dead, so others have them.
    pub(crate) fn lose_everything(&mut self) {
        for id in self.run_ids() {
            if let Some(epoch) = self.runs.get(&id).map(RunQueue::epoch) {
                self.lose_lease(&id, epoch);
            }
        }
        for arrival in self.samples.keys().copied().collect::<Vec<_>>() {
            self.remove_sample(arrival);
        }
        let samples: Vec<RequestId> =
            self.flights.iter().filter(|(_, flight)| flight.run.is_none()).map(|(id, _)| id.clone()).collect();
        samples.iter().for_each(|request| self.forget_sample(request));
    }

    /// Forgets an in-memory snapshot and the samples that wait for it: others may take these.
    fn forget_snapshot(&mut self, session: &SessionId, key: &str) {
        let Some(snapshot) = self.snapshots.remove(key) else { return };
        for arrival in snapshot.waiting {
            self.give_sample_back(arrival);
        }
        if let Some(load) = self.sessions.get_mut(session) {
            load.snapshots.remove(key);
        }
        self.signal(WorkItem::DropSnapshot(key.to_owned()));
    }

    /// A durably accepted request of a run; `payload` is read back when it is not given.
    pub(crate) fn park(
        &mut self,
        id: &RunId,
        seq_id: i64,
        request: RequestId,
        kind: RequestKind,
        cost: Cost,
        payload: Option<(Bytes, Decoded)>,
    ) {
        // Without the lease, when it was read back already, or was given up, it is not for now.
        if self.runs.get(id).is_none_or(|run| run.knows(seq_id) || run.cancelling.contains(&request)) {
            return;
        }
        let payload = self.hold(payload);
        let Some(run) = self.runs.get_mut(id) else { return };
        if let Some(failure) = &run.failure {
            let (fence, doom) = (Fence::Run(id.clone(), run.epoch), Doom::Failed(failure.clone()));
            self.out.doomed.push(Doomed { request, fence, doom });
            return self.released(&payload);
        }
        run.parked.insert(seq_id, Parked::Work(Entry { request, kind, cost, payload }));
        (run.idle_since, run.leaving) = (None, false);
        let session = run.session.clone();
        self.pending(&session);
        self.consider(id);
    }

    /// A place of a run's order that is never executed.
    pub(crate) fn consume(&mut self, id: &RunId, seq_id: i64) {
        if let Some(run) = self.runs.get_mut(id)
            && !run.knows(seq_id)
        {
            run.parked.insert(seq_id, Parked::Consumed);
            self.consider(id);
        }
    }

    /// Lists a run for the worker when its head can start, or gets what that needs; and gets what comes next.
    pub(super) fn consider(&mut self, id: &RunId) {
        self.consider_head(id);
        self.read_ahead(id);
    }

    fn consider_head(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.skip_consumed();
        if run.in_flight.is_some() || run.listed {
            return;
        }
        if matches!(run.history, History::Lost) && run.head_waits() {
            run.history = History::Reading;
            return self.out.fetches.push(Fetch::History { run: id.clone(), epoch: run.epoch });
        }
        let base_model = run.base_model.clone();
        let Some(head) = run.head() else { return };
        match head.payload {
            Slot::Held(..) => {
                run.listed = true;
                self.ready_runs.push_back(id.clone());
                self.out.ready = true;
            }
            Slot::Stored => self.out.fetches.push(head.fetch(id, base_model)),
            Slot::Reading => {}
        }
    }

    /// Gets the payloads of a run's next requests while the one before them is executed.
    fn read_ahead(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id).filter(|run| !run.moving) else { return };
        if self.held_bytes > READ_AHEAD_BYTES {
            return;
        }
        let base_model = run.base_model.clone();
        let stored = run.coming().take(READ_AHEAD).filter(|entry| matches!(entry.payload, Slot::Stored));
        self.out.fetches.extend(stored.map(|entry| entry.fetch(id, base_model.clone())));
    }

    /// A sample needs what a replay of the run makes.
    pub(super) fn want_restored(&mut self, id: &RunId) {
        let lost = || OpError::server("the snapshot of this sampling session was lost");
        let error = match self.runs.get_mut(id) {
            None => lost(),
            Some(RunQueue { failure: Some(failure), .. }) => failure.clone(),
            Some(run) => match run.history {
                History::Loaded => lost(),
                History::Reading | History::Replaying(_) => return,
                History::Lost => {
                    run.history = History::Reading;
                    return self.out.fetches.push(Fetch::History { run: id.clone(), epoch: run.epoch });
                }
            },
        };
        self.doom_samples_of_run(id, &error);
    }

    /// The operations to replay were listed, or can't be. What was listed for an older lease may lack some.
    pub(crate) fn history_read(&mut self, id: &RunId, epoch: i64, history: Option<VecDeque<Replayed>>) {
        let Some(run) = self.runs.get_mut(id).filter(|run| run.epoch == epoch) else { return };
        if !matches!(run.history, History::Reading) {
            return;
        }
        match history {
            Some(replays) => {
                run.history = History::Replaying(replays);
                self.end_replay_when_done(id);
                self.consider(id);
            }
            None => self.lose_run(id, "its requests could not be read"),
        }
    }

    /// The payload of a run's request was read, or is lost.
    pub(crate) fn payload_read(&mut self, id: &RunId, request: &RequestId, payload: Option<(Bytes, Decoded)>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let replaying = matches!(run.history, History::Replaying(_));
        let due = run.is_due(request);
        let reading = |entry: &&mut Entry| entry.request == *request && matches!(entry.payload, Slot::Reading);
        let Some(entry) = run.coming().find(reading) else { return };
        match payload {
            Some((bytes, decoded)) => entry.payload = Slot::Held(bytes, decoded),
            // Once its turn has come it is looked for again.
            None => entry.payload = Slot::Stored,
        }
        match &entry.payload {
            Slot::Held(bytes, _) => {
                self.held_bytes += bytes.len();
                self.consider(id);
            }
            _ if !due => {}
            _ if replaying => self.lose_run(id, "a stored request could not be read"),
            _ => self.doom_head(id, OpError::server("the stored request could not be read")),
        }
    }

    /// Ends a run's head, which never reached the worker.
    fn doom_head(&mut self, id: &RunId, error: OpError) {
        let Some(run) = self.runs.get_mut(id) else { return };
        // It comes again by itself.
        run.upkeep.clear();
        run.moving = false;
        // Upkeep that is being executed goes on.
        let in_flight = run.in_flight.take();
        let taken = run.take_head();
        run.in_flight = in_flight;
        let Some((seq_id, entry)) = taken else { return };
        run.next_seq += 1;
        let session = run.session.clone();
        self.released(&entry.payload);
        let Some(run) = self.runs.get(id) else { return };
        let (fence, doom) = (Fence::Run(id.clone(), run.epoch), Doom::Failed(error.clone()));
        self.out.doomed.push(Doomed { request: entry.request, fence, doom });
        if seq_id == 0 {
            self.fail_run(id, creation_failed(id, &error));
        }
        self.consider(id);
        self.settled(&session);
    }

    /// The request that is a run's head, and what is held against it; nothing when another operation comes first.
    pub(super) fn head_suspicion(&self, id: &RunId) -> Option<(RequestId, Suspicion)> {
        let run = self.runs.get(id).filter(|run| run.in_flight.is_none() && run.upkeep.is_empty() && !run.moving)?;
        match (&run.history, run.parked.get(&run.next_seq)) {
            (History::Loaded, Some(Parked::Work(entry))) => Some((entry.request.clone(), entry.cost.suspicion)),
            _ => None,
        }
    }

    /// Ends a run's head, which was listed for the worker.
    pub(super) fn condemn_head(&mut self, id: &RunId, error: OpError) {
        if let Some(run) = self.runs.get_mut(id) {
            run.listed = false;
        }
        self.doom_head(id, error);
    }

    /// Whose the head of a run is, and what it costs; nothing when it is executed again.
    pub(super) fn head_cost(&mut self, id: &RunId) -> Option<(TenantId, u64)> {
        let run = self.runs.get_mut(id)?;
        let replay = matches!(run.history, History::Replaying(_));
        let tokens = run.head().map_or(0, |head| head.cost.tokens);
        Some((run.tenant.clone(), if replay { 0 } else { tokens }))
    }

    pub(super) fn start_head(&mut self, id: &RunId, now: Timestamp) -> Option<Work> {
        let run = self.runs.get_mut(id)?;
        run.listed = false;
        let startable =
            run.in_flight.is_none() && run.head().is_some_and(|head| matches!(head.payload, Slot::Held(..)));
        if !startable {
            return None;
        }
        let replay = matches!(run.history, History::Replaying(_));
        let (seq_id, entry) = run.take_head()?;
        let flight = Flight {
            tenant: run.tenant.clone(),
            session: run.session.clone(),
            kind: entry.kind,
            run: Some(id.clone()),
            sampling_session: None,
            fence: Fence::Run(id.clone(), run.epoch),
            seq_id,
            replay,
            cost: entry.cost,
            started: now,
        };
        if replay || entry.kind.is_upkeep() {
            // It is no request of its own, and yet the session must not go before it is done.
            self.pending(&flight.session);
        }
        self.released(&entry.payload);
        let Slot::Held(payload, decoded) = entry.payload else { return None };
        self.read_ahead(id);
        Some(self.launch(entry.request, flight, seq_id, None, (payload, decoded)))
    }

    /// The worker is done with a request of a run.
    pub(super) fn finish_of_run(&mut self, id: &RunId, flight: &Flight, error: Option<&OpError>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let Some(in_flight) = run.in_flight.take() else { return };
        if error.is_none() && flight.kind != RequestKind::RestoreRun {
            run.replay_cost = run.replay_cost.saturating_add(flight.cost.tokens.max(1));
        }
        match (in_flight.replay, error) {
            _ if flight.kind.is_upkeep() && !in_flight.replay => self.upkept(id, flight.kind, error),
            (true, Some(error)) => self.lose_run(id, &error.message),
            (true, None) => {
                for key in in_flight.snapshots {
                    self.add_snapshot(&flight.session, key, id.clone(), true);
                }
                self.end_replay_when_done(id);
            }
            (false, error) => {
                let created = run.next_seq == 0;
                run.next_seq += 1;
                if let Some(error) = error.filter(|_| created) {
                    self.fail_run(id, creation_failed(id, error));
                }
            }
        }
        self.consider(id);
    }

    fn end_replay_when_done(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id) else { return };
        if !matches!(&run.history, History::Replaying(replays) if replays.is_empty()) {
            return;
        }
        run.history = History::Loaded;
        // What still waits for a snapshot waits for one that the history does not make.
        self.doom_samples_of_run(id, &OpError::server("the snapshot of this sampling session was lost"));
    }

    /// A run can't be restored.
    fn lose_run(&mut self, id: &RunId, cause: &str) {
        let error = OpError::server(format!("training run {id} could not be restored after a restart: {cause}"));
        tracing::error!(run = %id, cause, "a run could not be restored");
        if let Some(run) = self.runs.get(id) {
            self.out.lost.push((id.clone(), run.epoch, error.clone()));
        }
        self.fail_run(id, error);
    }

    /// A run can't be used: what waits fails, and so will what comes.
    pub(crate) fn fail_run(&mut self, id: &RunId, error: OpError) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.failure = Some(error.clone());
        run.moving = false;
        let history = std::mem::replace(&mut run.history, History::Loaded);
        run.listed = false;
        run.upkeep.clear();
        let waiting = run.take_waiting(i64::MIN);
        self.throttle.forget(&run.tenant, &Turn::Run(id.clone()));
        let (session, fence) = (run.session.clone(), Fence::Run(id.clone(), run.epoch));
        self.forget_replays(history);
        self.doom_entries(&session, &fence, waiting, &Doom::Failed(error.clone()));
        self.doom_samples_of_run(id, &error);
    }

    /// Ends a run's waiting requests with its session.
    pub(super) fn end_run(&mut self, session: &SessionId, id: &RunId, cancel: bool) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let gap = run.first_gap();
        let (from, doom) = if cancel {
            (i64::MIN, Doom::Cancelled)
        } else {
            (gap, Doom::Failed(OpError::user(format!("the session ended before request {gap} of {id} arrived"))))
        };
        let waiting = run.take_waiting(from);
        if cancel {
            run.cancelling.extend(waiting.iter().map(|entry| entry.request.clone()));
            self.throttle.forget(&run.tenant, &Turn::Run(id.clone()));
            run.listed = false;
        }
        let fence = Fence::Run(id.clone(), run.epoch);
        self.doom_entries(session, &fence, waiting, &doom);
    }

    /// Gives up what was to be executed again.
    pub(super) fn forget_replays(&mut self, history: History) {
        if let History::Replaying(replays) = history {
            replays.iter().for_each(|replayed| self.released(&replayed.entry.payload));
        }
    }

    fn doom_entries(&mut self, session: &SessionId, fence: &Fence, entries: Vec<Entry>, doom: &Doom) {
        for entry in entries {
            self.released(&entry.payload);
            self.out.doomed.push(Doomed { request: entry.request, fence: fence.clone(), doom: doom.clone() });
            self.settled(session);
        }
    }
}

/// What the later requests of a run are told whose creation failed.
pub(crate) fn creation_failed(id: &RunId, cause: &OpError) -> OpError {
    OpError::user(format!("training run {id} could not be created: {cause}"))
}

/// The cause when a run's creation is given up with its session.
pub(crate) fn session_ended() -> OpError {
    OpError::user("its session ended")
}
