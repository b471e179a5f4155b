//! Runs: strictly by seq_id, one request at a time, after a replay when the run's memory was lost.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use super::{Doom, Entry, Fetch, Flight, Queue, Slot};
use crate::{Decoded, RequestKind, Work};

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
struct InFlight {
    replay: bool,
    snapshots: Vec<String>,
}

/// A run's requests.
#[derive(Debug)]
pub(crate) struct RunQueue {
    tenant: TenantId,
    session: SessionId,
    /// The first place whose request has not ended.
    next_seq: i64,
    parked: BTreeMap<i64, Parked>,
    in_flight: Option<InFlight>,
    /// It is among the ready runs.
    listed: bool,
    history: History,
    /// What every request is told, once the run can't be used.
    failure: Option<OpError>,
}

impl RunQueue {
    /// A run whose first `next_seq` requests have ended.
    pub(crate) fn new(tenant: TenantId, session: SessionId, next_seq: i64, history: History) -> Self {
        let (parked, failure) = (BTreeMap::new(), None);
        Self { tenant, session, next_seq, parked, in_flight: None, listed: false, history, failure }
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
            History::Loaded => match self.parked.get_mut(&self.next_seq) {
                Some(Parked::Work(entry)) => Some(entry),
                _ => None,
            },
        }
    }

    /// Whether the request that comes next has arrived.
    fn head_waits(&self) -> bool {
        matches!(self.parked.get(&self.next_seq), Some(Parked::Work(_)))
    }

    /// Takes the head with its place, and notes it as in flight.
    fn take_head(&mut self) -> Option<(i64, Entry)> {
        if let History::Replaying(replays) = &mut self.history {
            let Replayed { seq_id, entry, snapshots } = replays.pop_front()?;
            self.in_flight = Some(InFlight { replay: true, snapshots });
            return Some((seq_id, entry));
        }
        match self.parked.remove(&self.next_seq)? {
            Parked::Work(entry) => {
                self.in_flight = Some(InFlight { replay: false, snapshots: Vec::new() });
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
        let executing = self.in_flight.as_ref().is_some_and(|flight| !flight.replay);
        let mut seq = self.next_seq + i64::from(executing);
        while self.parked.contains_key(&seq) {
            seq += 1;
        }
        seq
    }
}

impl Queue {
    /// A run of a known session.
    pub(crate) fn add_run(&mut self, id: RunId, run: RunQueue) {
        if let Some(load) = self.sessions.get_mut(&run.session) {
            load.runs.insert(id.clone());
        }
        self.runs.insert(id, run);
    }

    /// A durably accepted request of a run; `payload` is read back when it is not given.
    pub(crate) fn park(
        &mut self,
        id: &RunId,
        seq_id: i64,
        request: RequestId,
        kind: RequestKind,
        payload: Option<(Bytes, Decoded)>,
    ) {
        let payload = self.hold(payload);
        let Some(run) = self.runs.get_mut(id) else {
            self.released(&payload);
            // The session ended meanwhile.
            return self.out.doomed.push((request, Doom::Cancelled));
        };
        if let Some(failure) = &run.failure {
            self.out.doomed.push((request, Doom::Failed(failure.clone())));
            return self.released(&payload);
        }
        run.parked.insert(seq_id, Parked::Work(Entry { request, kind, payload }));
        let session = run.session.clone();
        self.pending(&session);
        self.consider(id);
    }

    /// A place of a run's order that is never executed.
    pub(crate) fn consume(&mut self, id: &RunId, seq_id: i64) {
        if let Some(run) = self.runs.get_mut(id) {
            run.parked.insert(seq_id, Parked::Consumed);
            self.consider(id);
        }
    }

    /// Lists a run for the worker when its head can start, or gets what that needs.
    fn consider(&mut self, id: &RunId) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.skip_consumed();
        if run.in_flight.is_some() || run.listed {
            return;
        }
        if matches!(run.history, History::Lost) && run.head_waits() {
            run.history = History::Reading;
            return self.out.fetches.push(Fetch::History { run: id.clone() });
        }
        let Some(head) = run.head() else { return };
        match head.payload {
            Slot::Held(..) => {
                run.listed = true;
                self.ready_runs.push_back(id.clone());
                self.out.ready = true;
            }
            Slot::Stored => {
                head.payload = Slot::Reading;
                let request = head.request.clone();
                self.out.fetches.push(Fetch::Head { run: id.clone(), request });
            }
            Slot::Reading => {}
        }
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
                    return self.out.fetches.push(Fetch::History { run: id.clone() });
                }
            },
        };
        self.doom_samples_of_run(id, &error);
    }

    /// The operations to replay were listed, or can't be.
    pub(crate) fn history_read(&mut self, id: &RunId, history: Option<VecDeque<Replayed>>) {
        let Some(run) = self.runs.get_mut(id).filter(|run| matches!(run.history, History::Reading)) else { return };
        match history {
            Some(replays) => {
                run.history = History::Replaying(replays);
                self.end_replay_when_done(id);
                self.consider(id);
            }
            None => self.lose_run(id, "its requests could not be read"),
        }
    }

    /// The payload of a run's head was read, or is lost.
    pub(crate) fn head_read(&mut self, id: &RunId, request: &RequestId, payload: Option<Bytes>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let replaying = matches!(run.history, History::Replaying(_));
        let Some(head) = run.head().filter(|head| head.request == *request) else { return };
        match payload {
            Some(bytes) => {
                self.held_bytes += bytes.len();
                head.payload = Slot::Held(bytes, Decoded::default());
                self.consider(id);
            }
            None if replaying => self.lose_run(id, "a stored request could not be read"),
            None => self.doom_head(id, OpError::server("the stored request could not be read")),
        }
    }

    /// Ends a run's head, which never reached the worker.
    fn doom_head(&mut self, id: &RunId, error: OpError) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let Some((seq_id, entry)) = run.take_head() else { return };
        run.in_flight = None;
        run.next_seq += 1;
        let session = run.session.clone();
        self.out.doomed.push((entry.request, Doom::Failed(error.clone())));
        if seq_id == 0 {
            self.fail_run(id, creation_failed(id, &error));
        }
        self.consider(id);
        self.settled(&session);
    }

    pub(super) fn start_head(&mut self, id: &RunId) -> Option<Work> {
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
            replay,
        };
        if replay {
            // A replay is no request of its own, and yet the session must not go before it is done.
            self.pending(&flight.session);
        }
        self.released(&entry.payload);
        let Slot::Held(payload, decoded) = entry.payload else { return None };
        Some(self.launch(entry.request, flight, seq_id, None, (payload, decoded)))
    }

    /// The worker is done with a request of a run.
    pub(super) fn finish_of_run(&mut self, id: &RunId, flight: &Flight, error: Option<&OpError>) {
        let Some(run) = self.runs.get_mut(id) else { return };
        let Some(in_flight) = run.in_flight.take() else { return };
        match (in_flight.replay, error) {
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
        self.out.lost.push((id.clone(), error.clone()));
        self.fail_run(id, error);
    }

    /// A run can't be used: what waits fails, and so will what comes.
    pub(crate) fn fail_run(&mut self, id: &RunId, error: OpError) {
        let Some(run) = self.runs.get_mut(id) else { return };
        run.failure = Some(error.clone());
        run.history = History::Loaded;
        let waiting = run.take_waiting(i64::MIN);
        let session = run.session.clone();
        self.doom_entries(&session, waiting, &Doom::Failed(error.clone()));
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
        self.doom_entries(session, waiting, &doom);
    }

    fn doom_entries(&mut self, session: &SessionId, entries: Vec<Entry>, doom: &Doom) {
        for entry in entries {
            self.released(&entry.payload);
            self.out.doomed.push((entry.request, doom.clone()));
            self.settled(session);
        }
    }
}

/// What the later requests of a run are told whose creation failed.
pub(crate) fn creation_failed(id: &RunId, cause: &OpError) -> OpError {
    OpError::user(format!("training run {id} could not be created: {cause}"))
}
