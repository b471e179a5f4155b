//! A whole API on a real scheduler in a temporary folder. Tests play the worker by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tower::ServiceExt;
use trainyard_http::shutdown::Shutdown;
use trainyard_protocol::{BaseModel, ModelHead, Optimizer, RunSpec, TinkerPath};
use trainyard_scheduler::{
    Clock, Effect, Encoding, NewCheckpoint, Options, Outcome, Policies, Scheduler, TenantPolicy, Timestamp, Work,
    WorkItem, WorkerOptions,
};
use trainyard_storage::Storage;

use crate::auth::{Authenticator, Keys, TokenPolicy};
use crate::disk::tests::gauged;
use crate::engine;
use crate::metrics::ProcessMetrics;
use crate::models::Models;
use crate::signed_urls::Signer;
use crate::state::{AppState, Limits, Setup};
use crate::traces::Traces;

pub(crate) const KEY: &str = "tml-test";
pub(crate) const MODEL: &str = "acme/tiny";

/// The document, written once for the servers of all tests.
static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| crate::openapi::json().unwrap().into());

/// A clock that tests set.
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Server {
    pub(crate) state: AppState,
    pub(crate) shutdown: watch::Sender<bool>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) dir: TempDir,
    /// What is left of its disk.
    free: Arc<AtomicU64>,
    router: Router,
}

/// An answer, read to its end.
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Got {
    /// The JSON body of a 200.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", String::from_utf8_lossy(&self.body));
        self.any_json()
    }

    /// The JSON body of any answer.
    pub(crate) fn any_json(&self) -> Value {
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/json");
        assert_eq!(self.headers[header::CONTENT_LENGTH], self.body.len().to_string().as_str());
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A text field of a 200.
    pub(crate) fn text(&self, field: &str) -> String {
        self.json()[field].as_str().unwrap_or_else(|| panic!("{field} in {}", self.json())).to_owned()
    }

    /// Checks a refusal and returns its text.
    pub(crate) fn refused(&self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        assert!(!self.headers.contains_key(header::TRANSFER_ENCODING));
        assert!(!self.headers.contains_key(header::CONTENT_ENCODING));
        let body = self.any_json();
        // The compatible APIs have errors of their own.
        let text = if body["detail"].is_string() { &body["detail"] } else { &body["error"]["message"] };
        text.as_str().unwrap().to_owned()
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Limits { long_poll: Duration::from_millis(150), ..Limits::default() }, Keys::local()).await
    }

    pub(crate) async fn with(limits: Limits, keys: Keys) -> Self {
        Self::build(limits, keys, Policies::default()).await
    }

    /// A server that grants every tenant this.
    pub(crate) async fn granted(policy: TenantPolicy) -> Self {
        let limits = Limits { long_poll: Duration::from_millis(50), ..Limits::default() };
        Self::build(limits, Keys::local(), Policies::new(policy, BTreeMap::new())).await
    }

    async fn build(limits: Limits, keys: Keys, policies: Policies) -> Self {
        Self::serving(engine::testing::model(), limits, keys, policies).await
    }

    /// A server whose model has a vision tower.
    pub(crate) async fn with_images(limits: Limits) -> Self {
        Self::serving(engine::testing::model_with_images(), limits, Keys::local(), Policies::default()).await
    }

    /// The same with these limits of tenants.
    pub(crate) async fn granted_with_images(policy: TenantPolicy) -> Self {
        let policies = Policies::new(policy, BTreeMap::new());
        Self::serving(engine::testing::model_with_images(), Limits::default(), Keys::local(), policies).await
    }

    async fn serving(model: BaseModel, limits: Limits, keys: Keys, policies: Policies) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
        let options = Options {
            clock: clock.clone(),
            policies,
            worker: Some(WorkerOptions::new("worker", vec![MODEL.to_owned()])),
            ..Options::new(dir.path().join("t.db"), Storage::folder(dir.path()))
        };
        let (stop, shutdown) = Shutdown::channel();
        let (disks, free) = gauged(1 << 40, None);
        let scheduler = Scheduler::open(options).await.unwrap();
        scheduler.directory().seed_organisations(keys.tenants()).await.unwrap();
        let keyed = !keys.is_empty();
        let state = AppState::new(Setup {
            scheduler: scheduler.clone(),
            preparer: Some(engine::testing::preparer_of(&model)),
            models: Models::new(vec![model], &BTreeMap::new()),
            auth: Authenticator::new(keys, TokenPolicy::default(), scheduler, clock.clone()),
            keyed,
            limits,
            shutdown,
            signer: Signer::open(&dir.path().join("key")).unwrap(),
            storage: Storage::folder(dir.path()),
            clock: clock.clone(),
            random: {
                let next = AtomicI64::new(40);
                Arc::new(move || next.fetch_add(1, Ordering::SeqCst) as u64)
            },
            public_url: None,
            https: false,
            process_metrics: ProcessMetrics::default(),
            disks,
            console: true,
            openapi: OPENAPI.clone(),
            traces: Traces::default(),
        });
        let router = crate::api::router(state.clone());
        Self { state, shutdown: stop, clock, dir, free, router }
    }

    /// Lets its disk have so many free bytes.
    pub(crate) fn set_free(&self, bytes: u64) {
        self.free.store(bytes, Ordering::SeqCst);
        self.state.disks.look();
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Got {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Got { status: parts.status, headers: parts.headers, body }
    }

    /// A request with a key and further headers.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Got {
        let mut request = Request::builder().method(method).uri(path).header("host", "trainyard.test:8000");
        if !headers.iter().any(|(name, _)| *name == "x-api-key") {
            request = request.header("x-api-key", KEY);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.call(Method::GET, &format!("/api/v1/{path}"), &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Got {
        self.post_as(KEY, path, body).await
    }

    pub(crate) async fn post_as(&self, key: &str, path: &str, body: Value) -> Got {
        let headers = [("x-api-key", key), ("content-type", "application/json")];
        self.call(Method::POST, &format!("/api/v1/{path}"), &headers, body.to_string()).await
    }

    /// `method` on a path below `training_runs/`.
    pub(crate) async fn on_run(&self, method: Method, path: &str, body: Option<Value>) -> Got {
        let body = body.map_or_else(Body::empty, |value| Body::from(value.to_string()));
        let headers = [("content-type", "application/json")];
        self.call(method, &format!("/api/v1/training_runs/{path}"), &headers, body).await
    }

    pub(crate) async fn session(&self) -> String {
        let body = json!({"tags": [], "user_metadata": {"a": 1}, "sdk_version": "0.38.0", "type": "create_session"});
        self.post("create_session", body).await.text("session_id")
    }

    /// A run of rank 8 that exists.
    pub(crate) async fn run(&self) -> String {
        let session = self.session().await;
        let body = json!({
            "session_id": session, "model_seq_id": 0, "base_model": MODEL, "user_metadata": {"who": "me"},
            "lora_config": {"rank": 8}, "optimizer_config": {"type": "adamw"}, "type": "create_model",
        });
        let run = self.post("create_model", body).await.text("model_id");
        let work = self.next_work().await;
        self.succeed(&work, &json!({"model_id": run}), vec![]);
        run
    }

    /// A sampling session on the base model.
    pub(crate) async fn sampler(&self) -> String {
        let session = self.session().await;
        let body = json!({"session_id": session, "sampling_session_seq_id": 0, "base_model": MODEL});
        self.post("create_sampling_session", body).await.text("sampling_session_id")
    }

    /// A checkpoint of a run, with one file.
    pub(crate) async fn checkpoint(&self, run: &str, seq_id: i64, kind: &str, name: &str) -> String {
        let call = match kind {
            "weights" => "save_weights",
            "sampler_weights" => "save_weights_for_sampler",
            _ => "save_weights_external",
        };
        let submitted = self.post(call, json!({"model_id": run, "seq_id": seq_id, "path": name})).await;
        let work = self.next_work().await;
        let path: TinkerPath = format!("tinker://{run}/{kind}/{name}").parse().unwrap();
        let dir = crate::save_locations::checkpoint_location(&path, &work.request, 0);
        let files = self.dir.path().join(&dir);
        std::fs::create_dir_all(&files).unwrap();
        std::fs::write(files.join("adapter_model.safetensors"), b"weights").unwrap();
        let spec = RunSpec {
            base_model: MODEL.to_owned(),
            lora: None,
            optimizer: Optimizer::AdamW,
            head: ModelHead::Unembedding,
        };
        let checkpoint = NewCheckpoint {
            path: path.clone(),
            overwrite: false,
            dir,
            size_bytes: 7,
            spec,
            expires_in: None,
            user_metadata: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        };
        self.succeed(&work, &json!({"path": path.to_string()}), vec![Effect::Checkpoint(checkpoint)]);
        let done = self.poll(&submitted.text("request_id")).await;
        assert_eq!(done.text("path"), path.to_string());
        path.to_string()
    }

    /// Where a checkpoint's files are.
    pub(crate) async fn folder(&self, path: &str) -> std::path::PathBuf {
        let tenant = trainyard_protocol::TenantId::new("local");
        let found = self.state.scheduler.checkpoint(&tenant, &path.parse().unwrap()).await.unwrap();
        self.dir.path().join(found.dir)
    }

    /// What the worker is asked to start next.
    pub(crate) async fn next_work(&self) -> Work {
        let items = self.work().await;
        assert_eq!(items.len(), 1, "{items:?}");
        items.into_iter().next().unwrap()
    }

    /// All that the worker is asked to start now.
    pub(crate) async fn work(&self) -> Vec<Work> {
        let scheduler = self.state.scheduler.clone();
        let items = tokio::task::spawn_blocking(move || scheduler.wait_work(Duration::from_secs(5))).await.unwrap();
        let start = |item| match item {
            WorkItem::Start(work) => Some(work),
            WorkItem::Cancel(_) | WorkItem::Abandon(_) | WorkItem::UnloadRun(_) | WorkItem::DropSnapshot(_) => None,
        };
        items.into_iter().filter_map(start).collect()
    }

    pub(crate) fn succeed(&self, work: &Work, result: &Value, effects: Vec<Effect>) {
        let outcome = Outcome::Succeeded { encoding: Encoding::Json, payload: result.to_string().into() };
        self.state.scheduler.complete(work.request.clone(), outcome, effects);
    }

    pub(crate) fn succeed_with_bytes(&self, work: &Work, payload: &'static [u8]) {
        let outcome = Outcome::Succeeded { encoding: Encoding::Protobuf, payload: Bytes::from_static(payload) };
        self.state.scheduler.complete(work.request.clone(), outcome, vec![]);
    }

    /// Polls as the SDK does for a sample or a training result.
    pub(crate) async fn poll(&self, request_id: &str) -> Got {
        let body = json!({"request_id": request_id, "allow_metadata_only": true}).to_string();
        self.call(Method::POST, "/api/v1/retrieve_future", &[("accept", "application/x-protobuf")], body).await
    }
}

/// A LoRA step's parameters.
pub(crate) fn adam(run: &str, seq_id: i64, learning_rate: f64) -> Value {
    json!({"model_id": run, "seq_id": seq_id, "type": "optim_step", "adam_params": {"learning_rate": learning_rate}})
}

/// A backward pass of one example of one token.
pub(crate) fn backward(run: &str, seq_id: i64) -> Value {
    let targets = json!({"data": [2], "dtype": "int64", "shape": [1]});
    let input = json!({"chunks": [{"type": "encoded_text", "tokens": [1]}]});
    let data = json!([{"model_input": input, "loss_fn_inputs": {"target_tokens": targets}}]);
    let pass = json!({"data": data, "loss_fn": "cross_entropy"});
    json!({"model_id": run, "seq_id": seq_id, "forward_backward_input": pass})
}

/// A sample of a short prompt.
pub(crate) fn sample(sampler: &str, seq_id: i64) -> Value {
    json!({
        "sampling_session_id": sampler, "seq_id": seq_id, "num_samples": 2, "type": "sample",
        "prompt": {"chunks": [{"type": "encoded_text", "tokens": [1, 2]}, {"type": "encoded_text", "tokens": []}]},
        "sampling_params": {"max_tokens": 4, "temperature": 1.0, "top_k": -1, "top_p": 1.0},
    })
}
