//! The processes of a world, and the invariants that must hold at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use trainyard_protocol::{OpError, RequestId, SamplingSessionId, SessionId};

use super::super::database::Backend;
use super::super::fleet::{Site, kill, round};
use super::super::{LONG, NO_WAIT, new_run, new_sampling, new_session, sample, submission};
use super::plan::{Deed, LAST, LENGTH, Plan, Script};
use super::process::{Held, Memory, Process};
use super::steps::Step;
use crate::store::db::sql;
use crate::{MaintenanceOp, Poll, RequestKind, Scheduler, Work, WorkItem};

const NAMES: [&str; 2] = ["a", "b"];
/// Most crashes in a history: after six crashes of its workers a request would fail.
const CRASHES: usize = 5;
/// Duration longer than a session lives without a heartbeat.
const SESSION_TIMEOUT: Duration = Duration::from_secs(301);

/// Division of roles among processes.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// One process accepts and executes requests.
    One(Backend),
    /// Two workers, and a process that only accepts requests, on PostgreSQL.
    Fleet,
}

/// Source of a sampling session's weights: the base model, or a request of a run that kept them.
type Origin = Option<(usize, i64)>;

pub(super) struct World {
    /// Processes, workers first. Declared before the site, whose database can't be dropped properly while it is in use.
    processes: Vec<Option<Process>>,
    workers: usize,
    crashes: usize,
    session: SessionId,
    plans: Vec<Plan>,
    samplers: Vec<(SamplingSessionId, Origin)>,
    samples: Vec<RequestId>,
    /// Saved memory, by folder.
    folders: BTreeMap<PathBuf, Memory>,
    /// Number of executions of each request as new.
    executions: BTreeMap<RequestId, usize>,
    /// Reports of executions by request; each report is unique.
    reports: BTreeMap<RequestId, BTreeSet<String>>,
    /// Reports that must be refused.
    refused: BTreeSet<String>,
    /// Requests with a reason to be cancelled.
    cancellable: BTreeSet<RequestId>,
    /// Results that clients received.
    seen: BTreeMap<RequestId, Poll>,
    count: usize,
    site: Site,
    runtime: Runtime,
}

impl World {
    pub(super) fn new(layout: Layout, scripts: Vec<Script>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (backend, workers, others) = match layout {
            Layout::One(backend) => (backend, 1, 0),
            Layout::Fleet => (Backend::Postgres, NAMES.len(), 1),
        };
        let mut world = Self {
            processes: (0..workers + others).map(|_| None).collect(),
            workers,
            crashes: 0,
            session: SessionId::new("none"),
            plans: Vec::new(),
            samplers: Vec::new(),
            samples: Vec::new(),
            folders: BTreeMap::new(),
            executions: BTreeMap::new(),
            reports: BTreeMap::new(),
            refused: BTreeSet::new(),
            cancellable: BTreeSet::new(),
            seen: BTreeMap::new(),
            count: 0,
            site: runtime.block_on(Site::new(backend)),
            runtime,
        };
        world.begin(scripts);
        world
    }

    fn begin(&mut self, scripts: Vec<Script>) {
        let front = self.front();
        let Self { runtime, site, .. } = self;
        self.session = runtime.block_on(front.create_session(&site.me, new_session(None))).unwrap();
        let new = new_sampling(&self.session, 0, None);
        let base = runtime.block_on(front.create_sampling_session(&site.me, new)).unwrap();
        self.samplers.push((base, None));
        for (number, script) in (0..).zip(scripts) {
            let created = front.submit_create(&site.me, new_run(&self.session, number));
            let (run, submitted) = runtime.block_on(created).unwrap();
            self.plans.push(Plan::new(self.session.clone(), run, number, submitted.request_id, script));
        }
    }

    /// Returns a process, which is started if it is missing.
    fn process(&mut self, which: usize) -> &mut Process {
        let index = which % self.processes.len();
        let Self { processes, runtime, site, workers, .. } = self;
        processes[index].get_or_insert_with(|| {
            let name = (index < *workers).then(|| NAMES[index]);
            Process::new(runtime.block_on(site.process(name)))
        })
    }

    fn scheduler(&mut self, which: usize) -> Scheduler {
        self.process(which).scheduler.clone()
    }

    /// Returns the process that clients ask if any would do.
    fn front(&mut self) -> Scheduler {
        self.scheduler(self.processes.len() - 1)
    }

    pub(super) fn step(&mut self, step: &Step) {
        match *step {
            Step::Submit { run, through } => self.submit(run % self.plans.len(), through),
            Step::Resubmit { which, through } => self.resubmit(which, through),
            Step::Sample { sampler, through } => self.sample(sampler, through),
            Step::Cancel { which, through } => self.cancel(which, through),
            Step::Poll { which, through } => {
                let requests = self.requests();
                self.poll(&requests[which % requests.len()], through, NO_WAIT);
            }
            Step::Take { worker } => drop(self.take(worker % self.workers, Duration::from_millis(20))),
            Step::Complete { worker, which } => self.complete(worker % self.workers, which),
            Step::Round { process } => self.round(process % self.processes.len()),
            Step::Crash { process } => self.crash(process % self.processes.len()),
            Step::Stop { process } => self.stop(process % self.processes.len()),
            Step::Sleep { worker, other } => self.sleep(worker % self.workers, other % self.processes.len()),
            Step::Expire { through } => self.expire(through),
            Step::Heartbeat { through } => self.heartbeat(through),
            Step::Pass => self.site.pass(Duration::from_secs(600)),
        }
    }

    fn submit(&mut self, run: usize, through: usize) {
        if let Some(seq_id) = self.plans[run].next_arrival() {
            self.submit_as(run, seq_id, through);
        }
    }

    fn submit_as(&mut self, run: usize, seq_id: i64, through: usize) {
        let request = self.accepted(run, seq_id, through);
        self.plans[run].submitted.insert(seq_id, request);
    }

    fn accepted(&mut self, run: usize, seq_id: i64, through: usize) -> RequestId {
        let scheduler = self.scheduler(through);
        let plan = &self.plans[run];
        let submission = submission(&plan.run, seq_id, plan.kind(seq_id));
        self.runtime.block_on(scheduler.submit_run(&self.site.me, submission)).unwrap().request_id
    }

    fn resubmit(&mut self, which: usize, through: usize) {
        let run = which % self.plans.len();
        let submitted = &self.plans[run].submitted;
        let Some((seq_id, request)) = submitted.iter().nth(which / self.plans.len() % submitted.len()) else { return };
        let (seq_id, request) = (*seq_id, request.clone());
        let again = if seq_id == 0 {
            let (scheduler, number) = (self.scheduler(through), self.plans[run].number);
            let created = scheduler.submit_create(&self.site.me, new_run(&self.session, number));
            self.runtime.block_on(created).unwrap().1.request_id
        } else {
            self.accepted(run, seq_id, through)
        };
        assert_eq!(again, request, "a retry");
    }

    fn sample(&mut self, sampler: usize, through: usize) {
        let scheduler = self.scheduler(through);
        let sampler = &self.samplers[sampler % self.samplers.len()].0;
        let new = sample(sampler, i64::try_from(self.samples.len()).unwrap());
        let submit = |new| self.runtime.block_on(scheduler.submit_sample(&self.site.me, new)).unwrap().request_id;
        let request = submit(new.clone());
        assert_eq!(submit(new), request, "a retry");
        self.samples.push(request);
    }

    fn cancel(&mut self, which: usize, through: usize) {
        if self.samples.is_empty() {
            return;
        }
        let request = self.samples[which % self.samples.len()].clone();
        let scheduler = self.scheduler(through);
        self.cancellable.insert(request.clone());
        self.runtime.block_on(scheduler.cancel(&self.site.me, &request)).unwrap();
        assert_ne!(self.poll(&request, through, NO_WAIT), Poll::Pending, "it is cancelled or had ended");
    }

    fn requests(&self) -> Vec<RequestId> {
        let of_runs = self.plans.iter().flat_map(|plan| plan.submitted.values());
        of_runs.chain(&self.samples).cloned().collect()
    }

    /// Returns the result of a request, and checks that it never changes.
    fn poll(&mut self, request: &RequestId, through: usize, wait: Duration) -> Poll {
        let scheduler = self.scheduler(through);
        let poll = self.runtime.block_on(scheduler.poll(&self.site.me, request, wait)).unwrap();
        match self.seen.get(request) {
            Some(before) => assert_eq!(poll, *before, "what came of {request} changed"),
            None if poll == Poll::Pending => {}
            None => self.learn(request, poll.clone()),
        }
        poll
    }

    fn learn(&mut self, request: &RequestId, poll: Poll) {
        assert!(poll != Poll::Cancelled || self.cancellable.contains(request), "nobody cancelled {request}");
        if matches!(poll, Poll::Succeeded { .. })
            && let Some((index, seq_id)) = self.place(request)
            && self.plans[index].deed(seq_id) == Deed::Saves
        {
            self.samplers.push((self.plans[index].sampler(seq_id), Some((index, seq_id))));
        }
        self.seen.insert(request.clone(), poll);
    }

    /// Returns the run and the position of a request.
    fn place(&self, request: &RequestId) -> Option<(usize, i64)> {
        self.plans.iter().enumerate().find_map(|(index, plan)| {
            let found = plan.submitted.iter().find(|(_, id)| *id == request);
            found.map(|(seq_id, _)| (index, *seq_id))
        })
    }

    fn is_registered(&self, worker: usize) -> bool {
        let process = self.processes[worker].as_ref();
        process.is_some_and(|process| self.runtime.block_on(process.is_registered(NAMES[worker])))
    }

    fn take(&mut self, worker: usize, wait: Duration) -> bool {
        let items = self.process(worker).scheduler.wait_work(wait);
        let any = !items.is_empty();
        let registered = any && self.is_registered(worker);
        for item in items {
            match item {
                WorkItem::Start(work) => self.started(worker, work, registered),
                item => self.process(worker).forget(&item),
            }
        }
        any
    }

    fn started(&mut self, worker: usize, work: Work, registered: bool) {
        let known = |poll: &Poll| *poll != Poll::Cancelled;
        // A worker is notified of a cancellation a little later.
        let ended = self.seen.get(&work.request).is_some_and(known);
        assert!(work.replay || !registered || !ended, "{} had ended and starts as new: {work:?}", work.request);
        if work.run.is_some() {
            let alone = !self.process(worker).held.iter().any(|held| held.work.run == work.run);
            assert!(alone, "one request of a run at a time");
        }
        // A worker without its leases does not know yet what others did.
        if registered {
            self.check_memory(worker, &work);
        }
        if work.run.is_some() && !work.replay && !work.kind.is_maintenance() {
            *self.executions.entry(work.request.clone()).or_default() += 1;
        }
        // A sample may have been claimed with its submission.
        let void = work.run.is_some() && !registered;
        self.process(worker).held.push(Held { work, void });
    }

    /// Checks that the memory contains the effects of all earlier requests, exactly once.
    fn check_memory(&mut self, worker: usize, work: &Work) {
        let Some(run) = &work.run else { return self.check_weights(worker, work) };
        let index = self.plans.iter().position(|plan| plan.run == *run).unwrap();
        let expected = match work.kind {
            RequestKind::RestoreRun => Memory::new(),
            RequestKind::SaveRun | RequestKind::SaveSnapshot => self.memory_before(index, work.seq_id + 1, worker),
            _ => self.memory_before(index, work.seq_id, worker),
        };
        let process = self.processes[worker].as_mut().unwrap();
        let memory = process.runs.entry(run.clone()).or_default();
        assert_eq!(*memory, expected, "before {work:?} of worker {}", NAMES[worker]);
        if work.replay && work.kind != RequestKind::RestoreRun {
            assert_ne!(self.plans[index].deed(work.seq_id), Deed::Fails, "a failed request is not replayed");
        }
        if let Ok(MaintenanceOp::SaveSnapshot { key }) = serde_json::from_slice(&work.payload) {
            assert!(process.snapshots.contains_key(&key), "{key} is to be saved and is not there");
        }
    }

    /// Checks that a sample finds the weights that were kept for it.
    fn check_weights(&mut self, worker: usize, work: &Work) {
        let sampling = work.sampling_session.as_ref().unwrap();
        let (_, origin) = self.samplers.iter().find(|(id, _)| *id == sampling.id).unwrap();
        let Some((index, seq_id)) = *origin else { return };
        let expected = self.memory_before(index, seq_id, worker);
        let weights = match (&sampling.snapshot, &sampling.checkpoint_dir) {
            (Some(key), _) => self.process(worker).snapshots.get(key),
            (None, Some(dir)) => self.folders.get(dir),
            (None, None) => None,
        };
        assert_eq!(weights, Some(&expected), "the weights of {sampling:?}");
    }

    /// Returns the memory of a run when request `seq_id` starts: every earlier success.
    fn memory_before(&mut self, plan: usize, seq_id: i64, worker: usize) -> Memory {
        let before = self.plans[plan].submitted.range(..seq_id);
        let before: Vec<(i64, RequestId)> = before.map(|(seq_id, request)| (*seq_id, request.clone())).collect();
        assert_eq!(before.len(), usize::try_from(seq_id).unwrap(), "all before request {seq_id} have arrived");
        let mut memory = Memory::new();
        for (earlier, request) in before {
            match self.poll(&request, worker, LONG) {
                Poll::Pending => panic!("request {seq_id} starts before request {earlier} has ended"),
                Poll::Succeeded { .. } => memory.push(earlier),
                Poll::Failed(_) | Poll::Cancelled => {}
            }
        }
        memory
    }

    fn complete(&mut self, worker: usize, which: usize) {
        let process = self.process(worker);
        if process.held.is_empty() {
            return;
        }
        let Held { work, void } = process.held.remove(which % process.held.len());
        // A sample that its engine has not admitted may be given to another worker: it is executed where it still is.
        let here = process.scheduler.core.with_queue(|queue| queue.in_flight(&work.request).is_some());
        if work.run.is_none() && here {
            *self.executions.entry(work.request.clone()).or_default() += 1;
        }
        self.count += 1;
        let report = format!("{} {}", NAMES[worker], self.count);
        if void {
            self.refused.insert(report.clone());
        }
        if !work.replay {
            self.reports.entry(work.request.clone()).or_default().insert(report.clone());
        }
        let Self { processes, plans, folders, .. } = self;
        let process = processes[worker].as_mut().unwrap();
        let (outcome, effects) = match plans.iter().find(|plan| Some(&plan.run) == work.run.as_ref()) {
            Some(plan) => process.execute(&work, plan, &report, folders),
            None => (super::super::fleet::outcome(&report), Vec::new()),
        };
        process.scheduler.complete(work.request, outcome, effects);
    }

    fn round(&mut self, process: usize) {
        let scheduler = self.scheduler(process);
        self.runtime.block_on(round(&scheduler));
        self.void_what_was_lost();
    }

    /// Marks the work of workers whose leases expired: it is no longer theirs.
    fn void_what_was_lost(&mut self) {
        for worker in 0..self.workers {
            if !self.is_registered(worker)
                && let Some(process) = &mut self.processes[worker]
            {
                process.held.iter_mut().for_each(|held| held.void = true);
            }
        }
    }

    fn crash(&mut self, index: usize) {
        if self.crashes < CRASHES
            && let Some(process) = self.processes[index].take()
        {
            self.crashes += 1;
            kill(process.scheduler);
        }
    }

    fn stop(&mut self, index: usize) {
        if self.crashes < CRASHES
            && let Some(process) = self.processes[index].take()
        {
            self.crashes += 1;
            self.runtime.block_on(process.scheduler.close());
        }
    }

    fn sleep(&mut self, worker: usize, other: usize) {
        if self.crashes < CRASHES {
            self.crashes += 1;
            self.process(worker);
            self.runtime.block_on(self.site.pass_lease());
            if other != worker {
                self.round(other);
            }
        }
    }

    fn expire(&mut self, through: usize) {
        let open = self.requests().into_iter().filter(|request| !self.seen.contains_key(request));
        let open: Vec<RequestId> = open.collect();
        let scheduler = self.scheduler(through);
        self.site.pass(SESSION_TIMEOUT);
        if self.runtime.block_on(scheduler.maintain()).unwrap().sessions.is_empty() {
            return;
        }
        self.cancellable.extend(open.iter().cloned());
        // Another process is notified a little later.
        if self.processes.len() == 1 {
            let held = &self.process(0).held;
            let held: Vec<RequestId> = held.iter().map(|held| held.work.request.clone()).collect();
            for request in open.iter().filter(|request| !held.contains(request)) {
                assert_ne!(self.poll(request, 0, LONG), Poll::Pending, "what waits ends with its session");
            }
        }
    }

    fn heartbeat(&mut self, through: usize) {
        let scheduler = self.scheduler(through);
        self.runtime.block_on(scheduler.heartbeat(&self.site.me, &self.session)).unwrap();
    }

    pub(super) fn finish(&mut self) {
        let front = self.processes.len() - 1;
        self.heartbeat(front);
        for run in 0..self.plans.len() {
            while self.plans[run].next_arrival().is_some() {
                self.submit(run, front);
            }
        }
        self.settle();
        for run in 0..self.plans.len() {
            self.submit_as(run, LAST, front);
        }
        self.settle();
        self.check();
    }

    /// Continues until there is nothing left to do.
    fn settle(&mut self) {
        let front = self.processes.len() - 1;
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut any = false;
            for worker in 0..self.workers {
                any |= self.take(worker, Duration::from_millis(5));
                while !self.process(worker).held.is_empty() {
                    self.complete(worker, 0);
                    any = true;
                }
            }
            if any {
                continue;
            }
            if self.requests().iter().all(|request| self.poll(request, front, NO_WAIT) != Poll::Pending) {
                return;
            }
            assert!(Instant::now() < deadline, "nothing more becomes ready: {}", self.unfinished());
            (0..self.workers).for_each(|worker| self.round(worker));
        }
    }

    fn unfinished(&self) -> String {
        let open = |request: &RequestId| !self.seen.contains_key(request);
        let of_runs =
            self.plans.iter().flat_map(|plan| plan.submitted.iter().map(|(seq, id)| (plan.run.as_str(), seq, id)));
        let waiting: Vec<_> = of_runs.filter(|(_, _, id)| open(id)).collect();
        format!("{waiting:?}, {} samples", self.samples.iter().filter(|id| open(id)).count())
    }

    fn check(&mut self) {
        for through in 0..self.processes.len() {
            for request in self.requests() {
                // Every process returns the same result.
                let poll = self.poll(&request, through, NO_WAIT);
                self.check_end(&request, &poll);
            }
        }
        let scheduler = self.front();
        let created = |plan: &&Plan| self.seen[&plan.submitted[&0]] != Poll::Cancelled;
        for plan in self.plans.iter().filter(created) {
            const SQL: &str =
                "SELECT seq_id FROM requests WHERE run_id = $1 AND state <> 'cancelled' ORDER BY finished_at, seq_id";
            let ended: Vec<i64> = self.runtime.block_on(async {
                let mut conn = scheduler.core.system_reader().await.unwrap();
                sql(SQL).bind(plan.run.as_str()).scalars(&mut conn).await.unwrap()
            });
            assert!(ended.is_sorted(), "{ended:?} ended in order");
        }
        let rows: Option<i64> = self.runtime.block_on(async {
            let mut conn = scheduler.core.system_reader().await.unwrap();
            sql("SELECT count(*) FROM requests WHERE finished_at IS NOT NULL").scalar(&mut conn).await.unwrap()
        });
        let of_runs = usize::try_from(LENGTH + 2).unwrap() * self.plans.len();
        assert_eq!(rows, Some(i64::try_from(of_runs + self.samples.len()).unwrap()), "each is there once");
    }

    /// Checks that a result was reported under a valid lease, or has another cause.
    fn check_end(&self, request: &RequestId, poll: &Poll) {
        let place = self.place(request);
        let lost = place.is_some_and(|(index, _)| self.seen[&self.plans[index].submitted[&0]] == Poll::Cancelled);
        let report = match poll {
            Poll::Succeeded { payload, .. } => String::from_utf8(payload.to_vec()).unwrap(),
            Poll::Failed(error) if lost => return assert!(is_creation_failed(error), "{error}"),
            Poll::Failed(error) => error.message.clone(),
            // The reason was checked when the cancellation was first seen.
            Poll::Cancelled => return,
            Poll::Pending => panic!("{request} is still pending"),
        };
        assert!(self.reports.get(request).is_some_and(|all| all.contains(&report)), "nobody reported {report:?}");
        assert!(!self.refused.contains(&report), "{report:?} was reported without a lease");
        let fails = place.is_some_and(|(index, seq_id)| self.plans[index].deed(seq_id) == Deed::Fails);
        assert_eq!(matches!(poll, Poll::Failed(_)), fails, "{request}");
        if self.crashes == 0 {
            assert_eq!(self.executions.get(request), Some(&1), "{request} was executed once");
        }
    }
}

fn is_creation_failed(error: &OpError) -> bool {
    error.message.contains("could not be created")
}
