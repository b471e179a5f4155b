//! Tests that rows of requests leave the store while their session is open, and that no request is executed again because
//! of that.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;
use crate::store::db::{connect_as_system, sql};

const HOUR: Duration = Duration::from_secs(3_600);
/// Time for which the result of a request is kept, and as long again until its row may be deleted.
const KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Returns the positions of a run whose rows are stored.
async fn stored(bench: &Bench, run: &RunId) -> Vec<i64> {
    const SQL: &str = "SELECT seq_id FROM requests WHERE run_id = $1 ORDER BY seq_id";
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    sql(SQL).bind(run.as_str()).scalars(conn).await.unwrap()
}

/// Lets time pass in an open session.
async fn wait(bench: &Bench, time: Duration) {
    bench.pass(time);
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
}

/// Completes the work that is ready soon; new requests as it is told. Returns whether there was any.
async fn drive(bench: &Bench, complete: impl Fn(&Bench, &Work)) -> bool {
    let scheduler = bench.scheduler.clone();
    let items = tokio::task::spawn_blocking(move || scheduler.wait_work(Duration::from_millis(15))).await.unwrap();
    for item in &items {
        let WorkItem::Start(work) = item else { continue };
        match work.kind {
            RequestKind::SaveRun => {
                let dir = format!("snapshots/r/{}-{}", work.seq_id, bench.clock.now().as_millis());
                bench.succeed_with(work, vec![Effect::RunSaved(dir.into())]);
            }
            RequestKind::RestoreRun => bench.succeed(work),
            _ if work.replay => bench.succeed(work),
            _ => complete(bench, work),
        }
    }
    !items.is_empty()
}

/// Submits the next request of a run, and executes it.
async fn execute(bench: &Bench, run: &RunId, seq_id: i64) -> RequestId {
    let request = bench.submit(run, seq_id, RequestKind::ForwardBackward).await;
    while bench.scheduler.poll(&bench.me, &request, NO_WAIT).await.unwrap() == Poll::Pending {
        drive(bench, Bench::succeed).await;
    }
    request
}

/// Saves a run that the worker has loaded, up to a position in its order.
async fn save(bench: &Bench, run: &RunId, seq_id: i64) {
    const SQL: &str = "SELECT coalesce(snapshot_seq, -1) FROM runs WHERE id = $1";
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    for _ in 0..100 {
        if sql(SQL).bind(run.as_str()).scalar::<i64>(conn).await.unwrap() == Some(seq_id) {
            return;
        }
        bench.scheduler.core.lease_round(false).await.unwrap();
        wait(bench, HOUR).await;
        drive(bench, |_, work| panic!("{work:?}")).await;
    }
    panic!("{run} was not saved up to {seq_id}");
}

fn is_gone<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Gone { .. }))
}

#[tokio::test]
async fn rows_of_ended_training_requests_leave_an_open_session() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let first = execute(&bench, &run, 1).await;
    let second = execute(&bench, &run, 2).await;
    let rejected = RunSubmission { rejected: Some(OpError::user("no")), ..submission(&run, 3, RequestKind::OptimStep) };
    let refused = bench.scheduler.submit_run(&bench.me, rejected.clone()).await.unwrap().request_id;
    wait(&bench, KEPT - HOUR).await;
    bench.scheduler.maintain().await.unwrap();
    assert!(matches!(bench.poll(&first).await, Poll::Succeeded { .. }));
    wait(&bench, 2 * HOUR).await;
    bench.scheduler.maintain().await.unwrap();
    assert!(is_gone(bench.scheduler.poll(&bench.me, &first, NO_WAIT).await));
    // A recovery executes the first two again, as long as the run is not saved.
    wait(&bench, KEPT).await;
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(stored(&bench, &run).await, [0, 1, 2]);
    save(&bench, &run, 3).await;
    bench.scheduler.maintain().await.unwrap();
    assert_eq!(stored(&bench, &run).await, [0], "it identifies the run's creation");
    let bench = bench.restart(true).await;
    for request in [&first, &second, &refused] {
        assert!(is_not_found(bench.scheduler.poll(&bench.me, request, NO_WAIT).await));
    }
    for again in [submission(&run, 1, RequestKind::ForwardBackward), submission(&run, 2, RequestKind::Forward), rejected] {
        let error = bench.scheduler.submit_run(&bench.me, again.clone()).await.unwrap_err();
        let text = format!("request {} of training run {run} has ended or expired", again.seq_id);
        assert_eq!((is_gone::<()>(Err(error.clone())), error.to_string()), (true, text));
    }
    let (same, submitted) = bench.scheduler.submit_create(&bench.me, new_run(&bench.session, 0)).await.unwrap();
    assert_eq!((same, submitted.sample_sequence_ids), (run.clone(), Vec::<String>::new()));
    bench.nothing_ready();
    execute(&bench, &run, 4).await;
    assert_eq!(stored(&bench, &run).await, [0, 4]);
}

/// Rows of a run that goes on for weeks do not grow with the number of its requests.
#[tokio::test]
async fn a_run_of_weeks_has_the_rows_of_two_days() {
    let bench = bench().await.restart_saving(20).await;
    let run = bench.ready_run(0).await;
    let mut most = 0;
    for seq_id in 1..=60 {
        execute(&bench, &run, seq_id).await;
        // Four requests a day, for two weeks.
        wait(&bench, 6 * HOUR).await;
        bench.scheduler.maintain().await.unwrap();
        most = most.max(stored(&bench, &run).await.len());
    }
    // Those of two days, and the creation.
    assert!((8..=11).contains(&most), "{most} rows");
}

#[tokio::test]
async fn samples_that_nobody_acknowledges_leave_no_rows_but_the_last_event() {
    const COUNT: &str = "SELECT count(*) FROM requests WHERE sampling_session_id IS NOT NULL";
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let mut samples = Vec::new();
    for seq_id in 0..4 {
        samples.push(bench.submit_sample(&sampler, seq_id).await.request_id);
        let work = bench.start().await;
        if seq_id % 2 == 0 { bench.fail(&work, "too long") } else { bench.succeed(&work) }
        let _ = bench.poll(&samples[samples.len() - 1]).await;
    }
    wait(&bench, KEPT + HOUR).await;
    bench.scheduler.maintain().await.unwrap();
    assert!(is_gone(bench.scheduler.poll(&bench.me, &samples[0], NO_WAIT).await));
    wait(&bench, KEPT).await;
    bench.scheduler.maintain().await.unwrap();
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    assert_eq!(sql(COUNT).scalar::<i64>(conn).await.unwrap(), Some(1));
    assert!(is_not_found(bench.scheduler.poll(&bench.me, &samples[0], NO_WAIT).await));
    let last = bench.scheduler.completions(&bench.me, &sampler, 0, 0, NO_WAIT).await.unwrap();
    assert_eq!((last.items.len(), last.cursor), (1, 4));
}

/// A step of a client, of time, or of the service.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Submits the first missing position: to be executed, or rejected at once.
    Submit { rejected: bool },
    /// Submits a position behind a missing one.
    SubmitAhead { by: i64, rejected: bool },
    /// Submits an earlier position again, chosen by a part of all.
    Again(u8),
    Hours(u8),
    Maintain,
    /// Saves the run and releases its lease.
    Save,
    Restart { kill: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any::<bool>().prop_map(|rejected| Step::Submit { rejected }),
        2 => (1..4_i64, any::<bool>()).prop_map(|(by, rejected)| Step::SubmitAhead { by, rejected }),
        4 => any::<u8>().prop_map(Step::Again),
        4 => (1..30_u8).prop_map(Step::Hours),
        4 => Just(Step::Maintain),
        2 => Just(Step::Save),
        2 => any::<bool>().prop_map(|kill| Step::Restart { kill }),
    ]
}

/// A request that was accepted.
struct Accepted {
    request: RequestId,
    rejected: bool,
    /// Time of its end, in ms since the epoch; `None` while it waits behind a gap.
    ended: Option<i64>,
}

/// What a run must do, whichever rows are deleted.
struct Model {
    bench: Bench,
    run: RunId,
    accepted: BTreeMap<i64, Accepted>,
    /// Positions that were executed, apart from replays.
    executed: RefCell<BTreeSet<i64>>,
}

impl Model {
    fn now(&self) -> i64 {
        self.bench.clock.now().as_millis()
    }

    fn first_missing(&self) -> i64 {
        (1..).find(|seq_id| !self.accepted.contains_key(seq_id)).unwrap()
    }

    fn submission(&self, seq_id: i64, rejected: bool) -> RunSubmission {
        let rejected = rejected.then(|| OpError::user("no"));
        RunSubmission { rejected, ..submission(&self.run, seq_id, RequestKind::ForwardBackward) }
    }

    async fn submit(&mut self, seq_id: i64, rejected: bool) {
        let submitted = self.bench.scheduler.submit_run(&self.bench.me, self.submission(seq_id, rejected)).await.unwrap();
        let ended = rejected.then(|| self.now());
        let new = Accepted { request: submitted.request_id, rejected, ended };
        assert!(self.accepted.insert(seq_id, new).is_none());
        self.execute_all().await;
    }

    /// Executes a new request; every third one fails.
    fn execute(&self, bench: &Bench, work: &Work) {
        assert_eq!(work.request, self.accepted[&work.seq_id].request);
        assert!(self.executed.borrow_mut().insert(work.seq_id), "{} is executed again", work.seq_id);
        if work.seq_id % 3 == 0 { bench.fail(work, "NaN") } else { bench.succeed(work) }
    }

    /// Executes what is due: positions in their order, each once.
    async fn execute_all(&mut self) {
        let first_missing = self.first_missing();
        let due: Vec<i64> = (1..first_missing).filter(|seq_id| self.accepted[seq_id].ended.is_none()).collect();
        for seq_id in due {
            let request = &self.accepted[&seq_id].request;
            while self.bench.scheduler.poll(&self.bench.me, request, NO_WAIT).await.unwrap() == Poll::Pending {
                drive(&self.bench, |bench, work| self.execute(bench, work)).await;
            }
            let now = self.now();
            self.accepted.get_mut(&seq_id).unwrap().ended = Some(now);
        }
    }

    /// Submits an accepted position again: it is the same request, or it is gone.
    async fn submit_again(&self, seq_id: i64) {
        let Accepted { request, rejected, ended } = &self.accepted[&seq_id];
        let age = ended.map_or(0, |ended| self.now() - ended);
        match self.bench.scheduler.submit_run(&self.bench.me, self.submission(seq_id, *rejected)).await {
            Ok(submitted) => assert_eq!(submitted.request_id, *request, "{seq_id}"),
            Err(Error::Gone { .. }) => assert!(age > 2 * KEPT.as_millis() as i64, "{seq_id} is gone after {age} ms"),
            Err(error) => panic!("{seq_id}: {error}"),
        }
    }

    /// Results are there for as long as it is documented.
    async fn check_results(&self) {
        for (seq_id, Accepted { request, ended, .. }) in &self.accepted {
            let age = ended.map(|ended| self.now() - ended);
            let poll = self.bench.scheduler.poll(&self.bench.me, request, NO_WAIT).await;
            match (age, poll) {
                (None, poll) => assert_eq!(poll, Ok(Poll::Pending), "{seq_id}"),
                (Some(_), Ok(poll)) => assert_ne!(poll, Poll::Pending, "{seq_id}"),
                (Some(age), Err(Error::Gone { .. })) => assert!(age > KEPT.as_millis() as i64, "{seq_id}: {age} ms"),
                (Some(age), Err(Error::NotFound { .. })) => {
                    assert!(age > 2 * KEPT.as_millis() as i64, "{seq_id}: {age} ms");
                }
                (_, Err(error)) => panic!("{seq_id}: {error}"),
            }
        }
    }

    async fn step(mut self, step: Step) -> Self {
        match step {
            Step::Submit { rejected } => self.submit(self.first_missing(), rejected).await,
            Step::SubmitAhead { by, rejected } => {
                let seq_id = self.first_missing() + by;
                if !self.accepted.contains_key(&seq_id) {
                    self.submit(seq_id, rejected).await;
                }
            }
            Step::Again(part) => {
                let place = self.accepted.len() * usize::from(part) / 256;
                if let Some(seq_id) = self.accepted.keys().nth(place).copied() {
                    self.submit_again(seq_id).await;
                }
            }
            Step::Hours(hours) => wait(&self.bench, HOUR * u32::from(hours)).await,
            Step::Maintain => drop(self.bench.scheduler.maintain().await.unwrap()),
            Step::Save => self.save().await,
            Step::Restart { kill } => {
                self.bench = self.bench.restart(kill).await;
                wait(&self.bench, Duration::ZERO).await;
            }
        }
        // What is in execution now was not submitted.
        drive(&self.bench, |_, work| panic!("{work:?}")).await;
        self.check_results().await;
        self
    }

    /// Saves the run, unless the worker has not loaded it.
    async fn save(&self) {
        for _ in 0..2 {
            self.bench.scheduler.core.lease_round(false).await.unwrap();
            wait(&self.bench, HOUR).await;
            while drive(&self.bench, |_, work| panic!("{work:?}")).await {}
        }
    }

    /// Checks that nothing is left in the end but the creation of the run.
    async fn finish(mut self) {
        let last = self.accepted.keys().last().copied().unwrap_or(0) + 1;
        for seq_id in 1..=last {
            if !self.accepted.contains_key(&seq_id) {
                self.submit(seq_id, false).await;
            }
        }
        save(&self.bench, &self.run, last).await;
        for _ in 0..2 {
            wait(&self.bench, KEPT + HOUR).await;
            self.bench.scheduler.maintain().await.unwrap();
        }
        assert_eq!(stored(&self.bench, &self.run).await, [0]);
        for seq_id in 1..=last {
            self.submit_again(seq_id).await;
        }
        self.submit(last + 1, false).await;
    }
}

async fn play(steps: Vec<Step>) {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let mut model = Model { bench, run, accepted: BTreeMap::new(), executed: RefCell::default() };
    for step in steps {
        model = model.step(step).await;
    }
    model.finish().await;
}

proptest! {
    #![proptest_config(Config { cases: 8, max_shrink_iters: 20, failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_request_is_executed_again_and_none_gone_too_early(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(play(steps));
    }
}
