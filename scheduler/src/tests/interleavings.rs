//! Random interleavings of submissions, work and restarts against a model of the worker's memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::Config;
use tokio::runtime::Runtime;

use super::*;

const RUNS: usize = 2;
/// Requests per run.
const LENGTH: usize = 6;

#[derive(Clone, Debug)]
enum Step {
    /// Submits the next request in the run's order of arrival.
    Submit(usize),
    /// Submits again what was submitted first.
    Resubmit(usize),
    Take,
    /// Completes one of the requests that the worker holds.
    Complete(usize),
    Restart {
        kill: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..RUNS).prop_map(Step::Submit),
        1 => (0..RUNS).prop_map(Step::Resubmit),
        4 => Just(Step::Take),
        4 => (0..8_usize).prop_map(Step::Complete),
        1 => any::<bool>().prop_map(|kill| Step::Restart { kill }),
    ];
    prop::collection::vec(step, 10..50)
}

/// The order of arrival of requests 1 to `LENGTH`, and which of them fail.
fn plan() -> impl Strategy<Value = (Vec<i64>, Vec<bool>)> {
    let seq_ids: Vec<i64> = (1..).take(LENGTH).collect();
    (Just(seq_ids).prop_shuffle(), prop::collection::vec(any::<bool>(), LENGTH))
}

struct Plan {
    run: RunId,
    arrivals: Vec<i64>,
    fails: Vec<bool>,
    submitted: BTreeMap<i64, RequestId>,
}

impl Plan {
    fn fails(&self, seq_id: i64) -> bool {
        seq_id > 0 && self.fails[usize::try_from(seq_id).unwrap() - 1]
    }

    /// What the worker's memory holds when request `seq_id` starts: every success before it, once.
    fn memory_before(&self, seq_id: i64) -> Vec<i64> {
        (0..seq_id).filter(|earlier| !self.fails(*earlier)).collect()
    }
}

struct World {
    bench: Option<Bench>,
    runtime: Runtime,
    plans: Vec<Plan>,
    /// The successes that the worker has in memory, by run.
    memory: BTreeMap<RunId, Vec<i64>>,
    held: Vec<Work>,
    /// How often each request was started as new; counted while no process was killed.
    starts: BTreeMap<RequestId, usize>,
    killed: bool,
}

impl World {
    fn new(plans: Vec<(Vec<i64>, Vec<bool>)>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let bench = runtime.block_on(bench());
        let plans = (0..)
            .zip(plans)
            .map(|(n, (arrivals, fails))| {
                let (run, request) = runtime.block_on(bench.create(n));
                Plan { run, arrivals, fails, submitted: BTreeMap::from([(0, request)]) }
            })
            .collect();
        let (memory, held, starts) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { bench: Some(bench), runtime, plans, memory, held, starts, killed: false }
    }

    fn bench(&self) -> &Bench {
        self.bench.as_ref().unwrap()
    }

    fn submit(&mut self, index: usize) {
        let plan = &self.plans[index];
        let Some(seq_id) = plan.arrivals.get(plan.submitted.len() - 1).copied() else { return };
        let request = self.runtime.block_on(self.bench().submit(&plan.run, seq_id, RequestKind::ForwardBackward));
        self.plans[index].submitted.insert(seq_id, request);
    }

    fn resubmit(&self, index: usize) {
        let plan = &self.plans[index];
        let Some((seq_id, request)) = plan.submitted.iter().next_back() else { return };
        let again = match seq_id {
            0 => self.runtime.block_on(self.bench().create(i64::try_from(index).unwrap())).1,
            _ => self.runtime.block_on(self.bench().submit(&plan.run, *seq_id, RequestKind::ForwardBackward)),
        };
        assert_eq!(again, *request);
    }

    fn take(&mut self, wait: Duration) -> bool {
        let items = self.bench().scheduler.wait_work(wait);
        let any = !items.is_empty();
        for item in items {
            let WorkItem::Start(work) = item else { panic!("unexpected {item:?}") };
            self.started(work);
        }
        any
    }

    fn started(&mut self, work: Work) {
        let plan = self.plans.iter().find(|plan| Some(&plan.run) == work.run.as_ref()).unwrap();
        assert!(!self.held.iter().any(|held| held.run == work.run), "one request of a run at a time");
        assert_eq!(plan.submitted.get(&work.seq_id), Some(&work.request));
        let memory = self.memory.entry(plan.run.clone()).or_default();
        assert_eq!(
            *memory,
            plan.memory_before(work.seq_id),
            "before request {} (replay: {})",
            work.seq_id,
            work.replay
        );
        if work.replay {
            assert!(!plan.fails(work.seq_id), "a failed request is not replayed");
        } else {
            *self.starts.entry(work.request.clone()).or_default() += 1;
        }
        self.held.push(work);
    }

    fn complete(&mut self, index: usize) {
        if self.held.is_empty() {
            return;
        }
        let work = self.held.remove(index % self.held.len());
        let plan = self.plans.iter().find(|plan| Some(&plan.run) == work.run.as_ref()).unwrap();
        if plan.fails(work.seq_id) {
            self.bench().fail(&work, &format!("failed {}", work.seq_id));
        } else {
            self.memory.entry(plan.run.clone()).or_default().push(work.seq_id);
            self.bench().succeed(&work);
        }
    }

    fn restart(&mut self, kill: bool) {
        let bench = self.bench.take().unwrap();
        self.bench = Some(self.runtime.block_on(bench.restart(kill)));
        self.killed |= kill || !self.held.is_empty();
        self.held.clear();
        self.memory.clear();
    }

    fn finish(&mut self) {
        for index in 0..self.plans.len() {
            while self.plans[index].submitted.len() <= LENGTH {
                self.submit(index);
            }
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while self.bench().scheduler.stats().queued > 0 || !self.held.is_empty() {
            assert!(std::time::Instant::now() < deadline, "nothing more becomes ready");
            self.take(if self.held.is_empty() { Duration::from_millis(200) } else { NO_WAIT });
            self.complete(0);
        }
        self.check_results();
    }

    fn check_results(&self) {
        for plan in &self.plans {
            for (seq_id, request) in &plan.submitted {
                let expected = if plan.fails(*seq_id) {
                    Poll::Failed(OpError::user(format!("failed {seq_id}")))
                } else {
                    Poll::Succeeded { encoding: Encoding::Json, payload: Bytes::from(format!("result {seq_id}")) }
                };
                assert_eq!(self.runtime.block_on(self.bench().poll(request)), expected);
                if !self.killed {
                    assert_eq!(self.starts.get(request), Some(&1), "request {seq_id} executes once");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 16, max_shrink_iters: 50, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_request_takes_effect_once_and_in_order(plans in prop::collection::vec(plan(), RUNS), steps in steps()) {
        let mut world = World::new(plans);
        for step in steps {
            match step {
                Step::Submit(index) => world.submit(index),
                Step::Resubmit(index) => world.resubmit(index),
                Step::Take => { world.take(NO_WAIT); }
                Step::Complete(index) => world.complete(index),
                Step::Restart { kill } => world.restart(kill),
            }
        }
        world.finish();
    }
}
