//! Random interleavings of two workers and an API server on one database, with crashes and lost leases, against a
//! model of each worker's memory.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::Config;
use tokio::runtime::Runtime;

use super::fleet::{Fleet, kill, outcome, round};
use super::fleet_steps::{LENGTH, PROCESSES, Plan, RUNS, Step, WORKERS, plan, steps};
use super::*;
use crate::Upkeep;
use crate::store::db::sql;

const NAMES: [&str; WORKERS] = ["a", "b"];

struct Held {
    work: Work,
    /// Its lease has passed on for certain: a report of it must be refused.
    void: bool,
}

struct Worker {
    scheduler: Scheduler,
    held: Vec<Held>,
    /// The successes that it has in memory, by run.
    memory: BTreeMap<RunId, Vec<i64>>,
}

struct World {
    workers: [Option<Worker>; 2],
    plans: Vec<Plan>,
    sampler: SamplingSessionId,
    samples: Vec<RequestId>,
    /// What was in memory when a run was saved, by folder.
    saves: BTreeMap<PathBuf, Vec<i64>>,
    /// What executions reported, by request; each report is unlike all others.
    reports: BTreeMap<RequestId, BTreeSet<String>>,
    /// Reports that must not stand.
    refused: BTreeSet<String>,
    /// What clients were told.
    seen: BTreeMap<RequestId, Poll>,
    count: usize,
    fleet: Fleet,
    runtime: Runtime,
}

impl World {
    fn new(plans: Vec<(Vec<i64>, Vec<bool>)>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let fleet = runtime.block_on(Fleet::new());
        let new = new_sampling(&fleet.session, 0, None);
        let sampler = runtime.block_on(fleet.api.create_sampling_session(&fleet.me, new)).unwrap();
        let plans = (0..)
            .zip(plans)
            .map(|(n, (arrivals, fails))| {
                let created = fleet.api.submit_create(&fleet.me, new_run(&fleet.session, n));
                let (run, submitted) = runtime.block_on(created).unwrap();
                Plan { run, arrivals, fails, submitted: BTreeMap::from([(0, submitted.request_id)]) }
            })
            .collect();
        Self {
            workers: [None, None],
            plans,
            sampler,
            samples: Vec::new(),
            saves: BTreeMap::new(),
            reports: BTreeMap::new(),
            refused: BTreeSet::new(),
            seen: BTreeMap::new(),
            count: 0,
            fleet,
            runtime,
        }
    }

    /// A process, started when it is not there.
    fn process(&mut self, index: usize) -> Scheduler {
        if index >= NAMES.len() { self.fleet.api.clone() } else { self.worker(index).scheduler.clone() }
    }

    fn worker(&mut self, index: usize) -> &mut Worker {
        let Self { workers, fleet, runtime, .. } = self;
        workers[index].get_or_insert_with(|| Worker {
            scheduler: runtime.block_on(fleet.worker(NAMES[index])),
            held: Vec::new(),
            memory: BTreeMap::new(),
        })
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Submit(run, through) => self.submit(run, through),
            Step::Resubmit(which, through) => self.resubmit(which, through),
            Step::Sample(through) => self.sample(through),
            Step::Cancel(which, through) => self.cancel(which, through),
            Step::Poll(which, through) => self.poll_one(which, through),
            Step::Take(worker) => drop(self.take(worker, Duration::from_millis(20))),
            Step::Complete(worker, which) => self.complete(worker, which),
            Step::Round(process) => self.round(process),
            Step::Crash(worker) => self.crash(worker),
            Step::Sleep(worker, other) => self.sleep(worker, other),
            Step::Pass => self.fleet.pass(Duration::from_secs(600)),
        }
    }

    fn submit(&mut self, run: usize, through: usize) {
        let process = self.process(through);
        let plan = &mut self.plans[run];
        let Some(seq_id) = plan.arrivals.get(plan.submitted.len() - 1).copied() else { return };
        let request = self.runtime.block_on(self.fleet.submit(&process, &plan.run, seq_id));
        plan.submitted.insert(seq_id, request);
    }

    fn resubmit(&mut self, which: usize, through: usize) {
        let process = self.process(through);
        let plan = &self.plans[which % RUNS];
        let Some((seq_id, request)) = plan.submitted.iter().nth(1 + which / RUNS % LENGTH) else { return };
        assert_eq!(self.runtime.block_on(self.fleet.submit(&process, &plan.run, *seq_id)), *request);
    }

    fn sample(&mut self, through: usize) {
        let process = self.process(through);
        let new = sample(&self.sampler, i64::try_from(self.samples.len()).unwrap());
        let submit = |new| self.runtime.block_on(process.submit_sample(&self.fleet.me, new)).unwrap().request_id;
        let request = submit(new.clone());
        assert_eq!(submit(new), request, "a retry");
        self.samples.push(request);
    }

    fn cancel(&mut self, which: usize, through: usize) {
        if self.samples.is_empty() {
            return;
        }
        let process = self.process(through);
        let request = self.samples[which % self.samples.len()].clone();
        self.runtime.block_on(process.cancel(&self.fleet.me, &request)).unwrap();
        assert_ne!(self.poll(&request, &process), Poll::Pending, "it is cancelled or had ended");
    }

    fn requests(&self) -> Vec<RequestId> {
        let of_runs = self.plans.iter().flat_map(|plan| plan.submitted.values());
        of_runs.chain(&self.samples).cloned().collect()
    }

    fn poll_one(&mut self, which: usize, through: usize) {
        let requests = self.requests();
        let process = self.process(through);
        self.poll(&requests[which % requests.len()], &process);
    }

    /// What came of a request, which never changes.
    fn poll(&mut self, request: &RequestId, process: &Scheduler) -> Poll {
        let poll = self.runtime.block_on(process.poll(&self.fleet.me, request, NO_WAIT)).unwrap();
        match self.seen.get(request) {
            Some(before) => assert_eq!(poll, *before, "what came of {request} changed"),
            None if poll == Poll::Pending => {}
            None => drop(self.seen.insert(request.clone(), poll.clone())),
        }
        poll
    }

    fn is_registered(&self, index: usize) -> bool {
        let Some(worker) = &self.workers[index] else { return false };
        let core = &worker.scheduler.core;
        let found: Option<i64> = self.runtime.block_on(async {
            let mut conn = self.fleet.api.core.reader().await.unwrap();
            sql("SELECT incarnation FROM workers WHERE id = $1").bind(NAMES[index]).scalar(&mut conn).await.unwrap()
        });
        found == Some(core.incarnation.load(Ordering::SeqCst))
    }

    fn take(&mut self, index: usize, wait: Duration) -> bool {
        let items = self.worker(index).scheduler.wait_work(wait);
        let any = !items.is_empty();
        let registered = !any || self.is_registered(index);
        for item in items {
            match item {
                WorkItem::Start(work) => self.started(index, work, registered),
                WorkItem::UnloadRun(run) => {
                    self.give_up(index, |work| work.run.as_ref() == Some(&run));
                    self.worker(index).memory.remove(&run);
                }
                WorkItem::Cancel(request) => self.give_up(index, |work| work.request == request),
                WorkItem::DropSnapshot(_) => panic!("there are no snapshots"),
            }
        }
        any
    }

    fn started(&mut self, index: usize, work: Work, registered: bool) {
        // A worker hears of a cancellation a little later.
        let ended = self.seen.get(&work.request).is_some_and(|poll| *poll != Poll::Cancelled);
        assert!(work.replay || !registered || !ended, "{} had ended and starts as new: {work:?}", work.request);
        let run = work.run.clone();
        if let Some(run) = &run {
            let plan = self.plans.iter().find(|plan| plan.run == *run).unwrap();
            let worker = self.workers[index].as_mut().unwrap();
            assert!(!worker.held.iter().any(|held| held.work.run == work.run), "one request of a run at a time");
            let memory = worker.memory.entry(run.clone()).or_default();
            let expected = match work.kind {
                RequestKind::RestoreRun => Vec::new(),
                RequestKind::SaveRun => plan.memory_before(work.seq_id + 1),
                _ => plan.memory_before(work.seq_id),
            };
            assert_eq!(*memory, expected, "before {work:?} of worker {}", NAMES[index]);
            assert!(!work.replay || !plan.fails(work.seq_id) || work.kind == RequestKind::RestoreRun);
        }
        // A sample may have come to it with its submission.
        let void = run.is_some() && !registered;
        self.worker(index).held.push(Held { work, void });
    }

    /// The worker was told to forget what it held; it may get the same again at once.
    fn give_up(&mut self, index: usize, is: impl Fn(&Work) -> bool) {
        self.worker(index).held.retain(|held| !is(&held.work));
    }

    fn complete(&mut self, index: usize, which: usize) {
        let worker = self.worker(index);
        if worker.held.is_empty() {
            return;
        }
        let held = worker.held.remove(which % worker.held.len());
        self.execute(index, &held.work);
        self.report(index, &held);
    }

    /// What an execution does to the worker's memory.
    fn execute(&mut self, index: usize, work: &Work) {
        let Some(run) = &work.run else { return };
        let plan = self.plans.iter().find(|plan| plan.run == *run).unwrap();
        let memory = self.workers[index].as_mut().unwrap().memory.entry(run.clone()).or_default();
        match work.kind {
            RequestKind::SaveRun => {}
            RequestKind::RestoreRun => {
                let Ok(Upkeep::RestoreRun { dir, .. }) = serde_json::from_slice(&work.payload) else {
                    panic!("no restore: {work:?}")
                };
                memory.clone_from(&self.saves[&dir]);
            }
            _ if plan.fails(work.seq_id) => {}
            _ => memory.push(work.seq_id),
        }
    }

    fn report(&mut self, index: usize, Held { work, void }: &Held) {
        self.count += 1;
        let report = format!("{} {}", NAMES[index], self.count);
        let worker = self.workers[index].as_ref().unwrap();
        if work.kind == RequestKind::SaveRun {
            let run = work.run.clone().unwrap();
            let dir = PathBuf::from(format!("snapshots/{run}/{}", self.count));
            self.saves.insert(dir.clone(), worker.memory.get(&run).cloned().unwrap_or_default());
            return worker.scheduler.complete(work.request.clone(), outcome(&report), vec![Effect::RunSaved(dir)]);
        }
        if *void {
            self.refused.insert(report.clone());
        }
        if !work.replay {
            self.reports.entry(work.request.clone()).or_default().insert(report.clone());
        }
        let plan = self.plans.iter().find(|plan| Some(&plan.run) == work.run.as_ref());
        let told = match plan {
            Some(plan) if !work.replay && plan.fails(work.seq_id) => Outcome::Failed(OpError::user(report)),
            _ => outcome(&report),
        };
        worker.scheduler.complete(work.request.clone(), told, Vec::new());
    }

    fn round(&mut self, process: usize) {
        let scheduler = self.process(process);
        self.runtime.block_on(round(&scheduler));
        for index in (0..NAMES.len()).filter(|index| *index != process) {
            if !self.is_registered(index)
                && let Some(worker) = &mut self.workers[index]
            {
                worker.held.iter_mut().for_each(|held| held.void = true);
            }
        }
    }

    fn crash(&mut self, index: usize) {
        if let Some(worker) = self.workers[index].take() {
            kill(worker.scheduler);
        }
    }

    fn sleep(&mut self, index: usize, other: usize) {
        self.worker(index);
        self.fleet.pass_lease();
        if other != index {
            self.round(other);
        }
    }

    fn finish(&mut self) {
        for run in 0..RUNS {
            while self.plans[run].submitted.len() <= LENGTH {
                self.submit(run, PROCESSES - 1);
            }
        }
        let (api, deadline) = (self.fleet.api.clone(), std::time::Instant::now() + Duration::from_secs(60));
        loop {
            let mut any = false;
            for index in 0..NAMES.len() {
                any |= self.take(index, Duration::from_millis(5));
                while !self.worker(index).held.is_empty() {
                    self.complete(index, 0);
                    any = true;
                }
            }
            if any {
                continue;
            }
            if self.requests().iter().all(|request| self.poll(request, &api) != Poll::Pending) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "nothing more becomes ready: {}", self.unfinished());
            (0..NAMES.len()).for_each(|index| self.round(index));
        }
        self.check();
    }

    fn unfinished(&self) -> String {
        let open = |request: &RequestId| !self.seen.contains_key(request);
        let of_runs =
            self.plans.iter().flat_map(|plan| plan.submitted.iter().map(|(seq, id)| (plan.run.as_str(), seq, id)));
        let waiting: Vec<_> = of_runs.filter(|(_, _, id)| open(id)).collect();
        format!("{waiting:?}, {} samples", self.samples.iter().filter(|id| open(id)).count())
    }

    fn check(&mut self) {
        for index in 0..PROCESSES {
            let process = self.process(index);
            for request in self.requests() {
                // The same through every process.
                let poll = self.poll(&request, &process);
                self.check_end(&request, &poll);
            }
        }
        for plan in &self.plans {
            for (seq_id, request) in &plan.submitted {
                assert_eq!(matches!(self.seen[request], Poll::Failed(_)), plan.fails(*seq_id), "request {seq_id}");
            }
            const SQL: &str = "SELECT seq_id FROM requests WHERE run_id = $1 ORDER BY finished_at, seq_id";
            let ended: Vec<i64> = self.runtime.block_on(async {
                let mut conn = self.fleet.api.core.reader().await.unwrap();
                sql(SQL).bind(plan.run.as_str()).scalars(&mut conn).await.unwrap()
            });
            assert_eq!(ended, (0..).take(LENGTH + 1).collect::<Vec<i64>>(), "each ended once and in order");
        }
        let open: Option<i64> = self.runtime.block_on(async {
            let mut conn = self.fleet.api.core.reader().await.unwrap();
            sql("SELECT count(*) FROM requests WHERE finished_at IS NULL").scalar(&mut conn).await.unwrap()
        });
        assert_eq!(open, Some(0));
    }

    /// What stands is what an execution under a valid lease reported, or a sample's cancellation.
    fn check_end(&self, request: &RequestId, poll: &Poll) {
        let report = match poll {
            Poll::Succeeded { payload, .. } => String::from_utf8(payload.to_vec()).unwrap(),
            Poll::Failed(error) => error.message.clone(),
            Poll::Cancelled => return assert!(self.samples.contains(request), "only samples are cancelled"),
            Poll::Pending => panic!("{request} has not ended"),
        };
        assert!(self.reports.get(request).is_some_and(|all| all.contains(&report)), "nobody reported {report:?}");
        assert!(!self.refused.contains(&report), "{report:?} was reported without a lease");
    }
}

proptest! {
    #![proptest_config(Config { cases: 12, max_shrink_iters: 40, failure_persistence: None, ..Config::default() })]

    #[test]
    fn two_workers_execute_each_request_once_and_in_order(
        plans in prop::collection::vec(plan(), RUNS),
        steps in steps(),
    ) {
        let mut world = World::new(plans);
        for step in &steps {
            world.step(step);
        }
        world.finish();
    }
}
