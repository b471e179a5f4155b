//! Tests of the admission of runs to memory: which runs wait, which are unloaded for them, and that no order of events
//! exceeds the budget.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;
use trainyard_protocol::{RunMemory, RunSpec, SessionId};

use super::super::{AcceptedRequest, Fetch, Replayed, maintenance_request};
use super::*;
use crate::quotas::Cost;
use crate::{Decoded, MaintenanceOp, Policies, Work, WorkItem};

/// Memory of a run, and of a snapshot of it.
const RUN: RunMemory = RunMemory { bytes: 40, snapshot_bytes: 5 };
/// Room for two runs, each with one snapshot.
const CAPACITY: u64 = 90;

const CREATE: RequestKind = RequestKind::CreateModel;
const STEP: RequestKind = RequestKind::OptimStep;
const SNAPSHOT: RequestKind = RequestKind::SaveWeightsForSampler;

/// A run in the store.
#[derive(Default)]
struct Stored {
    tenant: usize,
    memory: RunMemory,
    epoch: i64,
    requests: Vec<RequestKind>,
    /// Number of requests that have ended.
    done: usize,
    failures: Vec<OpError>,
    /// Keys of saved snapshots.
    saved: BTreeSet<String>,
}

/// A queue with a store and an engine around it.
struct World {
    queue: Queue,
    now: Timestamp,
    runs: BTreeMap<RunId, Stored>,
    /// Work that the engine executes.
    executing: VecDeque<Work>,
    /// Runs that the engine has loaded, with the keys of their snapshots in memory.
    loaded: BTreeMap<RunId, BTreeSet<String>>,
    /// Runs in the order in which they were loaded.
    loads: Vec<RunId>,
    /// Whether saves of runs fail.
    broken: bool,
}

fn id(run: usize) -> RunId {
    RunId::new(format!("s{run}:train:0"))
}

fn session(run: &RunId) -> SessionId {
    SessionId::new(run.as_str().split(':').next().unwrap())
}

fn tenant(tenant: usize) -> TenantId {
    TenantId::new(format!("t{tenant}"))
}

fn request(run: &RunId, seq_id: usize) -> RequestId {
    RequestId::new(format!("{run}/{seq_id}"))
}

impl World {
    fn new(capacity: u64) -> Self {
        let mut queue = Queue::new(Policies::default(), u64::MAX, 256);
        queue.set_memory_plan(MemoryPlan { budget: Some(capacity), ..MemoryPlan::default() });
        Self {
            queue,
            now: Timestamp(0),
            runs: BTreeMap::new(),
            executing: VecDeque::new(),
            loaded: BTreeMap::new(),
            loads: Vec::new(),
            broken: false,
        }
    }

    fn create(&mut self, run: usize, of: usize, memory: RunMemory) -> RunId {
        let id = id(run);
        self.runs.insert(id.clone(), Stored { tenant: of, memory, epoch: 1, ..Stored::default() });
        self.add(&id, History::Loaded);
        self.submit(&id, CREATE);
        id
    }

    fn add(&mut self, id: &RunId, history: History) {
        let Stored { tenant: of, epoch, done, memory, .. } = self.runs[id];
        let run = RunQueue::new(tenant(of), session(id), "m".into(), epoch, done as i64, history);
        self.queue.add_run(id.clone(), run.with_memory(memory));
    }

    fn submit(&mut self, id: &RunId, kind: RequestKind) -> RequestId {
        let stored = self.runs.get_mut(id).unwrap();
        stored.requests.push(kind);
        let seq_id = stored.requests.len() - 1;
        if self.queue.runs.contains_key(id) {
            self.enqueue(id, seq_id, kind)
        } else {
            self.claim(id)
        }
        request(id, seq_id)
    }

    fn enqueue(&mut self, id: &RunId, seq_id: usize, kind: RequestKind) {
        let payload = Some((Bytes::from_static(b"p"), Decoded::default()));
        let accepted = AcceptedRequest { request: request(id, seq_id), kind, cost: Cost::new(0, self.now), payload };
        self.queue.enqueue(id, seq_id as i64, accepted);
    }

    /// Applies the effects of changes of the queue, as the store does.
    fn settle(&mut self) {
        loop {
            let effects = self.queue.take_effects();
            let cancelled = effects.cancelled.into_values().flatten().map(|(request, _)| (request, None));
            let failed = effects.rejected.into_iter().map(|rejected| (rejected.request, Some(rejected.error)));
            let ended: Vec<_> = cancelled.chain(failed).collect();
            if effects.fetches.is_empty() && effects.released_runs.is_empty() && ended.is_empty() {
                return;
            }
            for (request, error) in ended {
                let run = self.runs.iter_mut().find(|(id, _)| request.as_str().starts_with(id.as_str()));
                let (_, stored) = run.unwrap();
                stored.done += 1;
                stored.failures.extend(error);
            }
            for (id, _) in effects.released_runs {
                self.claim(&id);
            }
            for fetch in effects.fetches {
                let Fetch::History { run, epoch } = fetch else { panic!("{fetch:?}") };
                let spec = RunSpec {
                    base_model: "m".into(),
                    lora: None,
                    optimizer: trainyard_protocol::Optimizer::AdamW,
                    head: trainyard_protocol::ModelHead::Unembedding,
                };
                let restore = MaintenanceOp::RestoreRun { spec, dir: "d".into() };
                let entry = maintenance_request(RequestId::new(format!("{run}/restore/{epoch}")), &restore);
                let replays = VecDeque::from([Replayed { seq_id: 0, entry, snapshots: Vec::new() }]);
                self.queue.history_read(&run, epoch, Some(replays));
            }
        }
    }

    /// Claims a run that was released, if it has unfinished requests.
    fn claim(&mut self, id: &RunId) {
        let Some(stored) = self.runs.get_mut(id).filter(|stored| stored.done < stored.requests.len()) else { return };
        stored.epoch += 1;
        let pending: Vec<(usize, RequestKind)> =
            stored.requests.iter().copied().enumerate().skip(stored.done).collect();
        self.add(id, History::Lost);
        pending.into_iter().for_each(|(seq_id, kind)| self.enqueue(id, seq_id, kind));
    }

    /// Lets the worker take work that is ready.
    fn take(&mut self) {
        self.settle();
        for item in self.queue.take(self.now) {
            match item {
                WorkItem::Start(work) => {
                    let run = work.run.clone().unwrap();
                    if matches!(work.kind, RequestKind::CreateModel | RequestKind::RestoreRun) {
                        assert!(self.loaded.insert(run.clone(), BTreeSet::new()).is_none(), "{run} is loaded twice");
                        self.loads.push(run);
                    } else {
                        assert!(self.loaded.contains_key(&run), "{run} is not loaded");
                    }
                    self.executing.push_back(work);
                }
                WorkItem::UnloadRun(run) => {
                    self.loaded.remove(&run);
                    self.executing.retain(|work| work.run.as_ref() != Some(&run));
                }
                WorkItem::DropSnapshot(key) => {
                    self.loaded.values_mut().for_each(|keys| _ = keys.remove(&key));
                }
                WorkItem::Cancel(_) | WorkItem::Abandon(_) => {}
            }
        }
        self.settle();
        self.check();
    }

    /// Finishes the oldest work of the worker. Returns whether there was any.
    fn finish(&mut self) -> bool {
        let Some(work) = self.executing.pop_front() else { return false };
        let run = work.run.clone().unwrap();
        let fails = self.broken && matches!(work.kind, RequestKind::SaveRun | RequestKind::SaveSnapshot);
        let error = fails.then(|| OpError::server("no space"));
        let key = format!("{}/key{}", run, work.seq_id);
        if work.kind == SNAPSHOT {
            self.loaded.get_mut(&run).unwrap().insert(key.clone());
        }
        self.queue.finish(&work.request, error.as_ref(), self.now).unwrap();
        match work.kind {
            _ if fails => {}
            RequestKind::SaveRun => self.queue.run_saved(&run),
            RequestKind::SaveSnapshot => {
                let MaintenanceOp::SaveSnapshot { key } = serde_json::from_slice(&work.payload).unwrap() else {
                    panic!()
                };
                let made = self.queue.snapshot_made(&key);
                self.queue.snapshot_saved(&run, &key, made, std::path::Path::new("d"));
                self.runs.get_mut(&run).unwrap().saved.insert(key);
            }
            RequestKind::RestoreRun => {}
            _ => {
                self.runs.get_mut(&run).unwrap().done += 1;
                if work.kind == SNAPSHOT {
                    self.queue.add_snapshot(&session(&run), key, run.clone(), true);
                }
                self.queue.schedule_maintenance(&run);
            }
        }
        self.settle();
        self.check();
        true
    }

    /// Checks that neither the queue's account nor the engine's contents exceed the budget.
    fn check(&self) {
        let of = |(run, keys): (&RunId, &BTreeSet<String>)| {
            let memory = self.runs[run].memory;
            memory.bytes + keys.len() as u64 * memory.snapshot_bytes
        };
        let held: u64 = self.loaded.iter().map(of).sum();
        assert!(held <= self.queue.capacity(), "the engine holds {held}: {:?}", self.loaded);
        assert!(self.queue.held_memory() <= self.queue.capacity(), "the account says {}", self.queue.held_memory());
    }

    /// Executes all work that can be executed now.
    fn work(&mut self) {
        loop {
            self.take();
            if !self.finish() && !self.queue.is_ready(self.now) {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
    }

    fn done(&self, id: &RunId) -> usize {
        self.runs[id].done
    }
}

#[test]
fn a_run_waits_until_an_idle_one_has_left() {
    let mut world = World::new(CAPACITY);
    let [a, b] = [0, 1].map(|run| world.create(run, 0, RUN));
    world.work();
    let c = world.create(2, 0, RUN);
    world.work();
    assert_eq!((world.done(&a), world.done(&b), world.done(&c)), (1, 1, 0));
    let wait = world.queue.memory_wait(&tenant(0), &request(&c, 0)).unwrap();
    assert_eq!(wait, MemoryWait { needed: 45, held: 90, capacity: CAPACITY });
    assert_eq!(world.queue.memory_wait(&tenant(1), &request(&c, 0)), None, "another tenant's");
    // `a` is used in the meantime, so that `b` is idle for longer.
    world.pass(IDLE / 2);
    world.submit(&a, STEP);
    world.work();
    world.pass(IDLE / 2);
    world.work();
    assert_eq!(world.done(&c), 1);
    assert_eq!(world.loaded.keys().collect::<Vec<_>>(), [&a, &c]);
    assert_eq!((world.queue.memory_wait(&tenant(0), &request(&c, 0)), world.queue.waiting_for_memory()), (None, 0));
}

#[test]
fn runs_that_are_used_in_turn_all_finish() {
    let mut world = World::new(CAPACITY);
    let runs: Vec<RunId> = (0..6).map(|run| world.create(run, 0, RUN)).collect();
    for step in 2..5 {
        for run in &runs {
            world.submit(run, STEP);
        }
        for _ in 0..20 {
            world.work();
            world.pass(IDLE);
        }
        assert!(runs.iter().all(|run| world.done(run) == step), "step {step}");
    }
}

#[test]
fn a_busy_run_leaves_after_a_while_between_two_requests() {
    let mut world = World::new(CAPACITY);
    let [a, b] = [0, 1].map(|run| world.create(run, 0, RUN));
    for run in [&a, &b] {
        (0..100).for_each(|_| drop(world.submit(run, STEP)));
    }
    let c = world.create(2, 0, RUN);
    for _ in 0..10 {
        world.take();
        world.finish();
    }
    assert_eq!((world.done(&c), world.queue.waiting_for_memory()), (0, 1));
    world.pass(SLICE);
    for _ in 0..10 {
        world.take();
        world.finish();
    }
    assert_eq!(world.done(&c), 1);
    world.work();
    world.pass(IDLE);
    world.work();
    assert_eq!((world.done(&a), world.done(&b)), (101, 101));
}

#[test]
fn the_tenant_that_holds_least_is_next() {
    let mut world = World::new(CAPACITY);
    (0..5).for_each(|run| drop(world.create(run, 0, RUN)));
    world.work();
    let other = world.create(5, 1, RUN);
    world.work();
    world.pass(IDLE);
    world.work();
    assert_eq!(world.loads[2], other);
}

#[test]
fn a_run_that_never_fits_is_refused_with_the_numbers() {
    let mut world = World::new(100 * MIB);
    let run = world.create(0, 0, RunMemory { bytes: 150 * MIB, snapshot_bytes: MIB });
    let then = world.submit(&run, STEP);
    world.work();
    assert_eq!((world.done(&run), world.loads.len()), (2, 0));
    let text = &world.runs[&run].failures[0].message;
    assert!(text.contains("needs 151 MiB") && text.contains("at most 100 MiB"), "{text}");
    assert_eq!(world.queue.memory_wait(&tenant(0), &then), None);
    // The oversized run does not keep others from memory.
    let small = world.create(1, 0, RUN);
    world.work();
    assert_eq!(world.done(&small), 1);
}

#[test]
fn a_run_that_was_accepted_waits_where_it_does_not_fit() {
    let mut world = World::new(CAPACITY);
    let run = world.create(0, 0, RUN);
    world.work();
    world.queue.suspend_session(&session(&run));
    world.queue.evict_runs(world.now, Duration::ZERO, BTreeMap::new());
    world.work();
    assert!(world.loaded.is_empty());
    // As after a restart with a smaller budget.
    world.queue.set_memory_plan(MemoryPlan { budget: Some(10), ..MemoryPlan::default() });
    world.submit(&run, STEP);
    world.work();
    assert_eq!((world.done(&run), world.runs[&run].failures.len()), (1, 0));
    assert!(world.queue.memory_wait(&tenant(0), &request(&run, 1)).is_some());
    world.queue.set_memory_plan(MemoryPlan { budget: Some(CAPACITY), ..MemoryPlan::default() });
    world.work();
    assert_eq!(world.done(&run), 2);
}

#[test]
fn snapshots_leave_the_memory_for_the_next_one() {
    let mut world = World::new(CAPACITY);
    let [a, b] = [0, 1].map(|run| world.create(run, 0, RUN));
    for _ in 0..4 {
        world.submit(&a, SNAPSHOT);
        world.work();
    }
    assert_eq!((world.done(&a), world.done(&b)), (5, 1));
    assert_eq!((world.loaded[&a].len(), world.runs[&a].saved.len()), (1, 3));
}

#[test]
fn a_load_beside_the_state_that_it_replaces_has_room() {
    let mut world = World::new(CAPACITY);
    let [a, b] = [0, 1].map(|run| world.create(run, 0, RUN));
    world.submit(&a, STEP);
    world.submit(&a, RequestKind::LoadWeights);
    world.work();
    assert_eq!(world.done(&a), 2, "the load waits");
    world.pass(IDLE);
    world.work();
    assert_eq!((world.done(&a), world.loaded.contains_key(&b)), (3, false));
    // The load can never have room beside a run that fills the memory.
    let mut world = World::new(50);
    let run = world.create(0, 0, RUN);
    world.submit(&run, STEP);
    world.submit(&run, RequestKind::LoadWeights);
    world.submit(&run, STEP);
    world.work();
    assert_eq!((world.done(&run), world.runs[&run].failures.len()), (4, 1));
}

#[test]
fn a_save_that_fails_is_not_tried_again_at_once() {
    let mut world = World::new(CAPACITY);
    (0..2).for_each(|run| drop(world.create(run, 0, RUN)));
    world.work();
    world.broken = true;
    let c = world.create(2, 0, RUN);
    world.work();
    world.pass(IDLE);
    world.work();
    assert_eq!(world.done(&c), 0);
    world.broken = false;
    world.pass(RETRY);
    world.work();
    assert_eq!(world.done(&c), 1);
}

/// An event in a random history.
#[derive(Clone, Debug)]
enum Event {
    Create(u64),
    Submit(usize, RequestKind),
    Take,
    Finish,
    Pass(Duration),
    EndSession(usize),
    Evict,
    Break(bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let run = 0..8_usize;
    let kind = prop_oneof![Just(STEP), Just(SNAPSHOT), Just(RequestKind::LoadWeights)];
    let event = prop_oneof![
        2 => (1..60_u64).prop_map(Event::Create),
        6 => (run.clone(), kind).prop_map(|(run, kind)| Event::Submit(run, kind)),
        6 => Just(Event::Take),
        8 => Just(Event::Finish),
        3 => prop_oneof![Just(IDLE), Just(SLICE)].prop_map(Event::Pass),
        1 => run.prop_map(Event::EndSession),
        1 => Just(Event::Evict),
        1 => any::<bool>().prop_map(Event::Break),
    ];
    proptest::collection::vec(event, 1..120)
}

proptest! {
    #[test]
    fn no_order_of_events_exceeds_the_budget_or_leaks(events in events()) {
        let mut world = World::new(CAPACITY);
        let mut ended = BTreeSet::new();
        for event in events {
            match event {
                Event::Create(bytes) if world.runs.len() < 8 => {
                    let (run, memory) = (world.runs.len(), RunMemory { bytes, snapshot_bytes: bytes / 8 });
                    world.create(run, run % 3, memory);
                }
                Event::Submit(run, kind) if world.runs.contains_key(&id(run)) && !ended.contains(&run) => {
                    world.submit(&id(run), kind);
                }
                Event::Take => world.take(),
                Event::Finish => _ = world.finish(),
                Event::Pass(time) => world.pass(time),
                Event::EndSession(run) if ended.insert(run) => {
                    world.queue.end_session(&SessionId::new(format!("s{run}")), true);
                    world.settle();
                    world.check();
                }
                Event::Evict => world.queue.evict_runs(world.now, IDLE, BTreeMap::new()),
                Event::Break(broken) => world.broken = broken,
                _ => {}
            }
        }
        world.broken = false;
        for _ in 0..200 {
            world.work();
            world.pass(SLICE);
        }
        prop_assert_eq!(world.queue.waiting_for_memory(), 0);
        for (run, stored) in &world.runs {
            let over = ended.iter().any(|ended| id(*ended) == *run);
            prop_assert!(over || stored.done == stored.requests.len(), "{} of {run}: {:?}", stored.done, stored.requests);
        }
        for run in 0..8 {
            world.queue.end_session(&SessionId::new(format!("s{run}")), true);
        }
        world.work();
        prop_assert_eq!((world.queue.held_memory(), world.loaded.len()), (0, 0));
    }
}
