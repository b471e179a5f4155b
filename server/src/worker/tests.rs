//! The worker against a scripted mailbox and a scripted engine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use bytes::Bytes;
use serde_json::{Value, json};
use trainyard_images::{Limits, Size};
use trainyard_protocol::{
    AdamParams, BaseModel, Category, EngineStats, ModelHead, OpResult, Optimizer, RunId, RunSpec, SampleProgress,
    SaveTarget, SavedFiles, SessionId, TenantId, TinkerPath,
};
use trainyard_scheduler::{Decoded, Encode, Encoding, Error, Measured, RequestKind, WatchedSample};
use trainyard_storage::Storage;
use trainyard_wire::images::ImageLimits;
use trainyard_wire::payload::{EphemeralKind, NamedSave, Payload};

use super::images::testing::{image, sample_of_images};
use super::*;
use crate::engine::testing::{model, model_with_images};

#[derive(Default)]
struct State {
    work: VecDeque<WorkItem>,
    done: Vec<(RequestId, Outcome, Vec<Effect>)>,
    admitted: Vec<RequestId>,
    watched: Vec<WatchedSample>,
    progress: Vec<(RequestId, SampleProgress)>,
    /// Locations of the catalogue's checkpoints.
    saved: BTreeMap<TinkerPath, PathBuf>,
}

#[derive(Clone, Default)]
struct Fake(Arc<(Mutex<State>, Condvar)>);

impl Fake {
    fn send(&self, item: WorkItem) {
        self.0.0.lock().unwrap().work.push_back(item);
        self.0.1.notify_all();
    }

    /// The request's answer, once there is one.
    fn answer(&self, id: &str) -> (Outcome, Vec<Effect>) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut state = self.0.0.lock().unwrap();
        loop {
            if let Some((_, outcome, effects)) = state.done.iter().find(|(request, ..)| request.as_str() == id) {
                return (outcome.clone(), effects.clone());
            }
            assert!(Instant::now() < deadline, "{id} was not answered");
            state = self.0.1.wait_timeout(state, Duration::from_millis(50)).unwrap().0;
        }
    }
}

impl Mailbox for Fake {
    fn take_work(&self) -> Vec<WorkItem> {
        self.0.0.lock().unwrap().work.drain(..).collect()
    }

    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem> {
        let mut state = self.0.0.lock().unwrap();
        if state.work.is_empty() {
            state = self.0.1.wait_timeout(state, timeout).unwrap().0;
        }
        state.work.drain(..).collect()
    }

    fn observe_engine(&self, _stats: EngineStats) {}

    fn weight(&self, _tenant: &TenantId) -> NonZeroU32 {
        NonZeroU32::MIN
    }

    async fn pin_load(&self, _: &TenantId, _: &RequestId, path: &TinkerPath) -> Result<PathBuf, Error> {
        let found = self.0.0.lock().unwrap().saved.get(path).cloned();
        found.ok_or_else(|| Error::NotFound { what: "checkpoint", id: path.to_string() })
    }

    fn samples_admitted(&self, requests: &[RequestId]) {
        let mut state = self.0.0.lock().unwrap();
        assert!(state.done.iter().all(|(done, ..)| !requests.contains(done)), "reported before its end");
        state.admitted.extend_from_slice(requests);
    }

    fn is_abandoned(&self, request: &RequestId) -> bool {
        let state = self.0.0.lock().unwrap();
        state.work.iter().any(|item| matches!(item, WorkItem::Abandon(abandoned) if abandoned == request))
    }

    fn watched_samples(&self) -> Vec<WatchedSample> {
        self.0.0.lock().unwrap().watched.clone()
    }

    fn report_progress(&self, request: &RequestId, progress: Vec<SampleProgress>) {
        self.0.0.lock().unwrap().progress.extend(progress.into_iter().map(|part| (request.clone(), part)));
    }

    fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>) {
        let mut state = self.0.0.lock().unwrap();
        for effect in &effects {
            if let Effect::Checkpoint(new) = effect {
                state.saved.insert(new.path.clone(), new.dir.clone());
            }
        }
        state.done.push((request, outcome, effects));
        drop(state);
        self.0.1.notify_all();
    }

    fn complete_encoded_by(&self, request: RequestId, _measured: Measured, encode: Encode) {
        self.complete(request, encode(), Vec::new());
    }
}

/// Answers every operation at the next step, and panics for runs whose name asks for it.
#[derive(Clone, Default)]
struct Script {
    calls: Arc<Mutex<Vec<String>>>,
    queue: Arc<Mutex<VecDeque<(RequestId, Operation)>>>,
    /// Number of further saves that find no space.
    full: Arc<Mutex<u32>>,
    /// Samples that the next step reports as admitted.
    admitted: Arc<Mutex<Vec<RequestId>>>,
    failure: Arc<Mutex<Option<OpError>>>,
}

impl Script {
    fn log(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    /// Whether the next save finds no space.
    fn is_full(&self) -> bool {
        let mut full = self.full.lock().unwrap();
        let before = *full;
        *full = before.saturating_sub(1);
        before > 0
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn save(target: &SaveTarget) -> OpResult {
    assert!(!target.dir.exists(), "each save has a folder of its own");
    std::fs::create_dir_all(&target.dir).unwrap();
    std::fs::write(target.dir.join("file"), b"weights").unwrap();
    OpResult::Saved(Some(SavedFiles { dir: target.dir.clone(), size_bytes: 42 }))
}

impl Engine for Script {
    fn models(&self) -> Vec<BaseModel> {
        Vec::new()
    }

    fn preparer(&self) -> Arc<dyn Prepare> {
        crate::engine::testing::preparer()
    }

    fn start(&mut self, id: RequestId, _share: TenantShare, operation: Operation) {
        if matches!(&operation, Operation::CreateRun { run, .. } if run.as_str() == "panics-at-start") {
            panic!("scripted");
        }
        self.log(format!("start {id}"));
        self.queue.lock().unwrap().push_back((id, operation));
    }

    fn step(&mut self) -> Vec<Completion> {
        let Some((id, operation)) = self.queue.lock().unwrap().pop_front() else { return Vec::new() };
        let result = match &operation {
            Operation::CreateRun { run, .. } if run.as_str() == "panics" => panic!("scripted"),
            Operation::CreateRun { run, .. } if run.as_str() == "loses-a-rank" => {
                *self.failure.lock().unwrap() = Some(OpError::server("rank 1 was lost"));
                return Vec::new();
            }
            Operation::OptimStep { run, .. } if run.as_str() == "lost" => {
                let failed = Completion::new(id, Err(OpError::server("internal error")));
                return vec![Completion { lost_run: Some(run.clone()), ..failed }];
            }
            Operation::CreateRun { run, .. } if run.as_str() == "takes-long" => {
                std::thread::sleep(Duration::from_secs(1));
                Ok(OpResult::RunReady)
            }
            Operation::CreateRun { run, .. } if run.as_str() == "fails" => Err(OpError::user("base_model: no")),
            Operation::CreateRun { .. } | Operation::RestoreRun(_) => Ok(OpResult::RunReady),
            Operation::LoadState(op) => {
                assert_eq!(std::fs::read(op.dir.join("file")).unwrap(), b"weights");
                Ok(OpResult::RunReady)
            }
            Operation::OptimStep { .. } => {
                let metrics = [("grad_norm".to_owned(), 1.5), ("bad".to_owned(), f64::NAN)];
                Ok(OpResult::OptimStep { metrics: metrics.into() })
            }
            Operation::SaveState(_) | Operation::SaveRun(_) if self.is_full() => Err(OpError::no_space("no space")),
            Operation::SaveState(op) => Ok(save(&op.target)),
            Operation::SaveRun(op) => Ok(save(&op.target)),
            Operation::SaveSnapshot(op) => Ok(save(&op.target)),
            Operation::SaveExternal(op) => Ok(save(&op.target)),
            Operation::SaveSampler(op) => {
                self.log(format!("snapshot {:?}", op.snapshot));
                Ok(op.target.as_ref().map_or(OpResult::Saved(None), save))
            }
            Operation::Sample(op) if !op.images.is_empty() => {
                Err(OpError::server(format!("not scripted, with {} images", op.images.len())))
            }
            Operation::ForwardBackward(_) | Operation::Sample(_) => Err(OpError::server("not scripted")),
        };
        vec![Completion::new(id, result)]
    }

    fn failure(&self) -> Option<OpError> {
        self.failure.lock().unwrap().clone()
    }

    fn is_idle(&self) -> bool {
        self.queue.lock().unwrap().is_empty()
    }

    fn take_admitted(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut *self.admitted.lock().unwrap())
    }

    fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        let ids: Vec<_> = ids.iter().map(RequestId::as_str).collect();
        self.log(format!("cancel {}", ids.join(" ")));
    }

    fn unload_run(&mut self, run: &RunId) {
        self.log(format!("unload {run}"));
    }

    fn drop_snapshot(&mut self, key: &str) {
        self.log(format!("drop {key}"));
    }
}

struct Bench {
    mailbox: Fake,
    engine: Script,
    storage: Storage,
    /// Holds the data folder.
    _data: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    worker: Option<WorkerHandle>,
}

impl Bench {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self::on(Storage::folder(data.path()), data)
    }

    fn on(storage: Storage, data: tempfile::TempDir) -> Self {
        let (mailbox, engine) = (Fake::default(), Script::default());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let deps = WorkerDeps {
            engine: Box::new(engine.clone()),
            workspace: Workspace::open(storage.clone(), data.path(), 1 << 20).unwrap(),
            runtime: runtime.handle().clone(),
            random: Arc::new(|| 7),
            images: Arc::new(ModelImages::new(&[named(), model_with_images()], ImageLimits::default())),
            image_memory: 1,
            image_pool: ImagePool::start(PoolSettings { threads: 1, memory: 1 << 20, limits: Limits::default() })
                .unwrap(),
        };
        let worker = spawn(mailbox.clone(), deps).unwrap();
        Self { mailbox, engine, storage, _data: data, runtime, worker: Some(worker) }
    }

    fn submit(&self, work: Work) -> (Outcome, Vec<Effect>) {
        let id = work.request.to_string();
        self.mailbox.send(WorkItem::Start(work));
        self.mailbox.answer(&id)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.join();
        }
    }
}

fn spec() -> RunSpec {
    RunSpec { base_model: "m".to_owned(), lora: None, optimizer: Optimizer::AdamW, head: ModelHead::Unembedding }
}

/// The model that requests of these tests name.
fn named() -> BaseModel {
    BaseModel { name: "m".to_owned(), ..model() }
}

fn work(id: &str, run: &str, seq_id: i64, kind: RequestKind, payload: Bytes) -> Work {
    Work {
        request: RequestId::new(id),
        tenant: TenantId::new("t"),
        run: Some(RunId::new(run)),
        sampling_session: None,
        base_model: "m".to_owned(),
        kind,
        seq_id,
        payload,
        decoded: Decoded::default(),
        replay: false,
    }
}

fn create(id: &str, run: &str) -> Work {
    let payload = Payload::CreateModel { spec: spec(), server_seed: false };
    work(id, run, 0, RequestKind::CreateModel, payload.encode().unwrap())
}

fn saving(id: &str, kind: RequestKind) -> Work {
    let save = NamedSave {
        name: "a".to_owned(),
        overwrite: false,
        ttl_seconds: Some(3600),
        user_metadata: [("k".to_owned(), "v".to_owned())].into(),
        spec: spec(),
        age_recipients: vec![],
    };
    let payload = match kind {
        RequestKind::SaveWeights => Payload::SaveWeights(save),
        RequestKind::SaveWeightsForSampler => Payload::SaveWeightsForSampler(save),
        _ => Payload::SaveWeightsExternal(save),
    };
    work(id, "s:train:0", 3, kind, payload.encode().unwrap())
}

#[track_caller]
fn json_of(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Succeeded { encoding: Encoding::Json, payload } => serde_json::from_slice(payload).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn error_of(outcome: &Outcome) -> &OpError {
    match outcome {
        Outcome::Failed(error) => error,
        Outcome::Succeeded { .. } => panic!("{outcome:?}"),
    }
}

#[test]
fn a_save_that_finds_no_space_is_written_once_there_is_some() {
    let bench = Bench::new();
    *bench.engine.full.lock().unwrap() = 2;
    let (outcome, effects) = bench.submit(saving("save", RequestKind::SaveWeights));
    assert_eq!(json_of(&outcome)["path"], "tinker://s:train:0/weights/a");
    assert_eq!(effects.len(), 1);
    assert_eq!(bench.engine.calls(), ["start save", "start save", "start save"]);
    // The scheduler repeats its own when it needs them.
    *bench.engine.full.lock().unwrap() = 1;
    let payload = serde_json::to_vec(&trainyard_scheduler::MaintenanceOp::SaveRun).unwrap();
    let (outcome, _) = bench.submit(work("own", "s:train:0", 4, RequestKind::SaveRun, payload.into()));
    assert!(error_of(&outcome).no_space);
}

/// Covers a folder and an object store.
#[test]
fn a_run_is_created_stepped_saved_and_loaded() {
    run_through(&Bench::new());
    run_through(&Bench::on(Storage::in_memory(), tempfile::tempdir().unwrap()));
}

fn run_through(bench: &Bench) {
    let (outcome, effects) = bench.submit(create("1", "s:train:0"));
    assert_eq!(json_of(&outcome), json!({"model_id": "s:train:0"}));
    assert_eq!(effects, [Effect::RunReady(RunId::new("s:train:0"))]);

    let params =
        AdamParams { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.0, grad_clip_norm: 0.0 };
    let step = Payload::OptimStep { params }.encode().unwrap();
    let (outcome, effects) = bench.submit(work("2", "s:train:0", 1, RequestKind::OptimStep, step));
    assert_eq!(json_of(&outcome), json!({"metrics": {"grad_norm": 1.5}}), "JSON has no NaN");
    assert!(effects.is_empty());

    let (outcome, effects) = bench.submit(saving("3", RequestKind::SaveWeights));
    assert_eq!(json_of(&outcome), json!({"path": "tinker://s:train:0/weights/a"}));
    let [Effect::Checkpoint(checkpoint)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(checkpoint.dir, PathBuf::from("checkpoints/s%3atrain%3a0/weights/a.3-0000000000000007"));
    assert!(!checkpoint.overwrite);
    let files = bench.runtime.block_on(bench.storage.files(&checkpoint.dir)).unwrap();
    assert_eq!(files, BTreeMap::from([("file".to_owned(), 7)]), "it is complete before it is reported");
    assert_eq!((checkpoint.size_bytes, checkpoint.expires_in), (42, Some(3600)));
    assert_eq!((checkpoint.user_metadata["k"].as_str(), &checkpoint.spec), ("v", &spec()));

    let (outcome, _) = bench.submit(saving("4", RequestKind::SaveWeightsForSampler));
    assert_eq!(json_of(&outcome), json!({"path": "tinker://s:train:0/sampler_weights/a"}));
    let (outcome, _) = bench.submit(saving("5", RequestKind::SaveWeightsExternal));
    assert_eq!(json_of(&outcome), json!({"path": "tinker://s:train:0/external_weights/a", "size_bytes": 42}));

    let path = "tinker://s:train:0/weights/a".to_owned();
    let load = Payload::LoadWeights {
        path: path.clone(),
        with_optimizer: true,
        create: Some(spec()),
        reader: None,
        checkpoint_base: None,
    };
    let load = work("6", "s:train:1", 0, RequestKind::LoadWeights, load.encode().unwrap());
    let (outcome, effects) = bench.submit(load);
    assert_eq!(json_of(&outcome), json!({"path": path, "model_id": "s:train:1"}));
    assert_eq!(effects, [Effect::RunReady(RunId::new("s:train:1"))]);
}

#[test]
fn a_load_of_what_is_not_there_is_the_users_error() {
    let bench = Bench::new();
    let path = "tinker://s:train:0/weights/a".to_owned();
    let load = Payload::LoadWeights {
        path: path.clone(),
        with_optimizer: true,
        create: Some(spec()),
        reader: None,
        checkpoint_base: None,
    };
    let load = |id: &str| work(id, "s:train:1", 0, RequestKind::LoadWeights, load.encode().unwrap());
    let (outcome, effects) = bench.submit(load("1"));
    assert_eq!(error_of(&outcome).category, Category::User);
    assert!(error_of(&outcome).message.contains("does not exist"));
    assert_eq!(effects, [Effect::RunFailed(RunId::new("s:train:1"))]);
    // The catalogue lists it, and its files are gone.
    bench.mailbox.0.0.lock().unwrap().saved.insert(path.parse().unwrap(), PathBuf::from("checkpoints/gone"));
    let (outcome, effects) = bench.submit(load("2"));
    assert_eq!(error_of(&outcome).category, Category::Server);
    assert_eq!(effects.len(), 1);
}

#[test]
fn a_replay_restores_memory() {
    let bench = Bench::new();
    for (id, kind, key) in
        [("2", EphemeralKind::Snapshot, "s:sample:4"), ("3", EphemeralKind::Inflight, "s:train:0/inflight")]
    {
        let payload = Payload::EphemeralSampler {
            session: SessionId::new("s"),
            sampling_session_seq_id: 4,
            base_model: "m".to_owned(),
            kind,
        };
        let mut work = work(id, "s:train:0", 2, RequestKind::SaveWeightsForSampler, payload.encode().unwrap());
        work.replay = true;
        let (outcome, effects) = bench.submit(work);
        assert_eq!(json_of(&outcome), json!({"sampling_session_id": "s:sample:4"}));
        let [Effect::SamplingSession(session)] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((session.seq_id, session.snapshot.as_deref()), (4, Some(key)));
        assert!(bench.engine.calls().contains(&format!("snapshot {:?}", Some(key))));
    }
}

#[test]
fn failures_keep_their_category() {
    let bench = Bench::new();
    let (outcome, effects) = bench.submit(create("1", "fails"));
    assert_eq!(error_of(&outcome), &OpError::user("base_model: no"));
    assert_eq!(effects, [Effect::RunFailed(RunId::new("fails"))]);

    let body = work("2", "s:train:0", 1, RequestKind::ForwardBackward, Bytes::from_static(b"\xff"));
    let (outcome, effects) = bench.submit(body);
    assert_eq!(error_of(&outcome).category, Category::User);
    assert!(effects.is_empty());

    let (outcome, _) = bench.submit(work("3", "s:train:0", 1, RequestKind::OptimStep, Bytes::from_static(b"{")));
    assert_eq!(error_of(&outcome).category, Category::Server);
    assert!(!error_of(&outcome).message.contains("EOF"), "internal detail stays in the log");
    let (outcome, _) = bench.submit(work("4", "s:train:0", 1, RequestKind::Sample, Bytes::from_static(b"{}")));
    assert_eq!(error_of(&outcome).category, Category::Server);
}

#[test]
fn a_panic_fails_its_request_and_spares_others() {
    let bench = Bench::new();
    for (id, run) in [("1", "panics"), ("2", "panics-at-start")] {
        let (outcome, effects) = bench.submit(create(id, run));
        assert_eq!(error_of(&outcome).category, Category::Server);
        assert!(!error_of(&outcome).message.contains("scripted"));
        assert_eq!(effects, [Effect::RunFailed(RunId::new(run))]);
        assert!(bench.engine.calls().contains(&format!("unload {run}")));
    }
    let (outcome, _) = bench.submit(create("3", "s:train:0"));
    json_of(&outcome);
}

#[test]
fn an_engine_that_cannot_go_on_ends_the_worker() {
    let bench = Bench::new();
    bench.mailbox.send(WorkItem::Start(create("1", "loses-a-rank")));
    until_finished(bench.worker.as_ref().unwrap());
    bench.mailbox.send(WorkItem::Start(create("2", "s:train:0")));
    assert_eq!(bench.engine.calls(), ["start 1"], "nothing is unloaded or failed: leases bring it to another worker");
}

fn until_finished(worker: &WorkerHandle) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !worker.is_finished() {
        assert!(std::time::Instant::now() < deadline, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_run_that_the_engine_lost_is_marked() {
    let bench = Bench::new();
    let params =
        AdamParams { learning_rate: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.0, grad_clip_norm: 0.0 };
    let step = Payload::OptimStep { params }.encode().unwrap();
    let (outcome, effects) = bench.submit(work("1", "lost", 1, RequestKind::OptimStep, step));
    assert_eq!(error_of(&outcome).category, Category::Server);
    assert_eq!(effects, [Effect::RunFailed(RunId::new("lost"))]);
}

#[test]
fn an_engine_that_keeps_panicking_is_given_up() {
    let bench = Bench::new();
    for id in ["1", "2", "3"] {
        error_of(&bench.submit(create(id, "panics")).0);
    }
    until_finished(bench.worker.as_ref().unwrap());
    // What comes later is left to others.
    bench.mailbox.send(WorkItem::Start(create("4", "s:train:0")));
    assert!(!bench.engine.calls().contains(&"start 4".to_owned()));
}

#[test]
fn housekeeping_reaches_the_engine() {
    let bench = Bench::new();
    bench.mailbox.send(WorkItem::Cancel(RequestId::new("9")));
    bench.mailbox.send(WorkItem::UnloadRun(RunId::new("r")));
    bench.mailbox.send(WorkItem::DropSnapshot("k".to_owned()));
    json_of(&bench.submit(create("1", "s:train:0")).0);
    assert_eq!(bench.engine.calls(), ["cancel 9", "unload r", "drop k", "start 1"]);
}

#[test]
fn an_abandoned_request_fails_once() {
    let bench = Bench::new();
    let items = [WorkItem::Start(create("1", "s:train:0")), WorkItem::Abandon(RequestId::new("1"))];
    bench.mailbox.0.0.lock().unwrap().work.extend(items);
    bench.mailbox.0.1.notify_all();
    let (outcome, effects) = bench.mailbox.answer("1");
    assert_eq!(effects, [Effect::RunFailed(RunId::new("s:train:0"))], "it would have created the run");
    assert_eq!(error_of(&outcome).message, "its session ended");
    assert_eq!(error_of(&outcome).category, Category::User);
    // The engine of the test completes it nevertheless. What was never started is ignored.
    bench.mailbox.send(WorkItem::Abandon(RequestId::new("9")));
    json_of(&bench.submit(create("2", "s:train:1")).0);
    assert_eq!(bench.engine.calls(), ["start 1", "cancel 1", "start 2"]);
    let done = bench.mailbox.0.0.lock().unwrap().done.iter().filter(|(id, ..)| id.as_str() == "1").count();
    assert_eq!(done, 1);
}

#[test]
fn an_abandoned_save_that_waits_for_space_is_not_written() {
    let bench = Bench::new();
    *bench.engine.full.lock().unwrap() = u32::MAX;
    bench.mailbox.send(WorkItem::Start(saving("save", RequestKind::SaveWeights)));
    while bench.engine.calls().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    bench.mailbox.send(WorkItem::Abandon(RequestId::new("save")));
    let (outcome, effects) = bench.mailbox.answer("save");
    assert_eq!(error_of(&outcome).message, "its session ended");
    assert_eq!(effects, []);
    *bench.engine.full.lock().unwrap() = 0;
    let calls = bench.engine.calls().len();
    json_of(&bench.submit(create("1", "s:train:1")).0);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(bench.engine.calls().len(), calls + 1, "it is not written again");
}

#[test]
fn admitted_samples_are_reported_before_what_their_step_completed() {
    let bench = Bench::new();
    bench.engine.admitted.lock().unwrap().extend(["1", "2"].map(RequestId::new));
    json_of(&bench.submit(create("1", "s:train:0")).0);
    assert_eq!(bench.mailbox.0.0.lock().unwrap().admitted, ["1", "2"].map(RequestId::new));
}

#[test]
fn a_step_that_takes_long_does_not_delay_a_stop() {
    let mut bench = Bench::new();
    bench.mailbox.send(WorkItem::Start(create("1", "takes-long")));
    let deadline = Instant::now() + Duration::from_secs(10);
    while bench.engine.calls().is_empty() {
        assert!(Instant::now() < deadline, "it does not start");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!bench.worker.take().unwrap().join_within(Duration::from_millis(20)));
    let mut idle = Bench::new();
    assert!(idle.worker.take().unwrap().join_within(Duration::from_secs(10)));
}

#[test]
fn it_stops_when_asked() {
    let mut bench = Bench::new();
    let worker = bench.worker.take().unwrap();
    assert!(!worker.is_finished());
    worker.join();
    bench.mailbox.send(WorkItem::UnloadRun(RunId::new("r")));
    assert!(bench.engine.calls().is_empty());
}

#[test]
fn images_are_decoded_before_the_engine_gets_their_request() {
    let bench = Bench::new();
    let size = Size::new(64, 32);
    let images = vec![image(1, size), image(2, size), image(1, size)];
    let (outcome, _) = bench.submit(sample_of_images("a", images));
    assert_eq!(error_of(&outcome).message, "not scripted, with 2 images");
    let mut damaged = image(3, size);
    damaged.data = damaged.data[..60].into();
    let (outcome, _) = bench.submit(sample_of_images("b", vec![image(1, size), damaged]));
    let error = error_of(&outcome);
    assert_eq!(error.category, Category::User);
    assert!(error.message.starts_with("prompt: the image at token 3: the PNG file is"), "{}", error.message);
    assert_eq!(bench.engine.calls(), ["start a"]);
}
