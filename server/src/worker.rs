//! The thread that joins scheduler and engine: it takes work, executes it in the engine's bounded steps, and
//! reports what came of it. HTTP never waits for it.

mod ahead;
mod fetching;
mod job;

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use ahead::read_ahead;
use fetching::{Fetched, Waiting};
use job::{Finished, Job, Prepared, Saved};
use tokio::runtime::Handle;
use trainyard_protocol::{Completion, Engine, EngineStats, Flow, OpError, Operation, RequestId, TenantId, TinkerPath};
use trainyard_scheduler::{Effect, Encode, Error, Outcome, Scheduler, Work, WorkItem};

use crate::state::Random;
use crate::workspace::Workspace;

/// How long an idle worker waits before it looks whether it shall stop. Work wakes it at once.
const IDLE_WAIT: Duration = Duration::from_millis(200);

/// The same while folders are on their way.
const FETCH_WAIT: Duration = Duration::from_millis(2);

/// Steps in a row that may panic before the engine is given up.
const MAX_PANICS: u32 = 3;

/// Where work comes from and results go.
pub trait Mailbox: Send + Sync + 'static {
    /// What is ready now.
    fn take_work(&self) -> Vec<WorkItem>;
    /// What is ready, waiting for it.
    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem>;
    /// The tenant's share of a busy engine.
    fn weight(&self, tenant: &TenantId) -> NonZeroU32;
    /// Tells what the engine has done and holds.
    fn observe_engine(&self, stats: EngineStats);
    /// The folder, in the storage, that a load reads; it stays there for the load's repetition.
    fn pin_load(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        path: &TinkerPath,
    ) -> impl Future<Output = Result<PathBuf, Error>> + Send;
    /// Reports a request's end; returns at once.
    fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>);
    /// Reports a request's success, whose result is still to be encoded; returns at once.
    fn complete_encoded_by(&self, request: RequestId, encode: Encode);
}

impl Mailbox for Scheduler {
    fn take_work(&self) -> Vec<WorkItem> {
        Self::take_work(self)
    }

    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem> {
        Self::wait_work(self, timeout)
    }

    fn weight(&self, tenant: &TenantId) -> NonZeroU32 {
        self.policies().of(tenant).weight
    }

    fn observe_engine(&self, stats: EngineStats) {
        self.metrics().set_engine(stats);
    }

    fn pin_load(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        path: &TinkerPath,
    ) -> impl Future<Output = Result<PathBuf, Error>> + Send {
        Self::pin_load(self, tenant, request, path)
    }

    fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>) {
        Self::complete(self, request, outcome, effects);
    }

    fn complete_encoded_by(&self, request: RequestId, encode: Encode) {
        Self::complete_encoded_by(self, request, encode);
    }
}

/// A running worker.
pub struct WorkerHandle {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl WorkerHandle {
    /// Asks it to finish its current step and take no more work. What it started and did not finish is executed
    /// again after the next start.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether its thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops it and waits for its thread.
    pub fn join(self) {
        self.stop();
        if self.thread.join().is_err() {
            tracing::error!("the worker's thread panicked");
        }
    }
}

/// What a worker works with.
pub struct Tools {
    /// Does the work.
    pub engine: Box<dyn Engine>,
    /// Where the engine writes and reads folders.
    pub workspace: Workspace,
    /// Moves folders to and from the storage.
    pub runtime: Handle,
    /// Makes the names of folders unique.
    pub random: Random,
}

/// Starts the worker.
///
/// # Errors
/// When the system gives no thread.
pub fn spawn(mailbox: impl Mailbox, tools: Tools) -> io::Result<WorkerHandle> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let Tools { engine, workspace, runtime, random } = tools;
    let (arrived, arrivals) = channel();
    let mut worker = Worker {
        mailbox: Arc::new(mailbox),
        engine,
        workspace,
        runtime,
        random,
        started: BTreeMap::new(),
        waiting: BTreeMap::new(),
        arrived,
        arrivals,
        panics: 0,
    };
    let thread = thread::Builder::new().name("worker".to_owned()).spawn(move || worker.run(&stopped))?;
    Ok(WorkerHandle { stop, thread })
}

struct Worker<M> {
    mailbox: Arc<M>,
    engine: Box<dyn Engine>,
    workspace: Workspace,
    runtime: Handle,
    random: Random,
    started: BTreeMap<RequestId, Job>,
    /// Whose folders are on their way.
    waiting: BTreeMap<RequestId, (Flow, Waiting)>,
    arrived: Sender<Fetched>,
    arrivals: Receiver<Fetched>,
    /// Panics of consecutive steps.
    panics: u32,
}

impl<M: Mailbox> Worker<M> {
    fn run(&mut self, stop: &AtomicBool) {
        // Without it the process ends: what waits is executed after the next start, or by another worker.
        while !stop.load(Ordering::Acquire) && !self.given_up() {
            let busy = !self.engine.is_idle();
            let wait = if self.waiting.is_empty() { IDLE_WAIT } else { FETCH_WAIT };
            let items = if busy { self.mailbox.take_work() } else { self.mailbox.wait_work(wait) };
            for item in items {
                self.accept(item);
            }
            self.mailbox.observe_engine(self.engine.stats());
            while let Ok(fetched) = self.arrivals.try_recv() {
                self.arrive(fetched);
            }
            if !self.engine.is_idle() {
                self.step();
            }
        }
    }

    fn given_up(&self) -> bool {
        self.panics >= MAX_PANICS
    }

    fn accept(&mut self, item: WorkItem) {
        match item {
            WorkItem::Start(work) => self.start(work),
            WorkItem::Cancel(request) => {
                self.started.remove(&request);
                self.waiting.remove(&request);
                self.guard("cancel", |engine| engine.cancel(&request));
            }
            WorkItem::UnloadRun(run) => {
                // What is still to come of these is nobody's any more.
                self.started.retain(|_, job| job.run.as_ref() != Some(&run));
                self.waiting.retain(|_, (_, waiting)| waiting.job.run.as_ref() != Some(&run));
                self.guard("unload_run", |engine| engine.unload_run(&run));
            }
            WorkItem::DropSnapshot(key) => {
                self.guard("drop_snapshot", |engine| engine.drop_snapshot(&key));
            }
        }
    }

    fn start(&mut self, work: Work) {
        let request = work.request.clone();
        let creates = work.seq_id == 0 && !work.kind.is_upkeep();
        let run = work.run.clone();
        let flow = Flow { name: work.tenant.as_str().into(), weight: self.mailbox.weight(&work.tenant) };
        match job::prepare(work, &self.workspace, &*self.random) {
            Ok(Prepared::Start(operation, job)) => self.start_operation(request, flow, *operation, *job),
            Ok(Prepared::Wait(waiting)) => self.fetch(request, flow, *waiting),
            Err(error) => {
                let effects = run.filter(|_| creates).map(Effect::RunFailed).into_iter().collect();
                self.mailbox.complete(request, Outcome::Failed(error), effects);
            }
        }
    }

    fn fetch(&mut self, request: RequestId, flow: Flow, waiting: Waiting) {
        let (mailbox, workspace) = (Arc::clone(&self.mailbox), self.workspace.clone());
        let (arrived, folder, restores) = (self.arrived.clone(), waiting.folder.clone(), waiting.restores);
        self.waiting.insert(request.clone(), (flow, waiting));
        self.runtime.spawn(async move {
            let folder = fetching::fetch(mailbox, workspace, folder, restores).await;
            // A worker that has stopped needs it no more.
            let _ = arrived.send(Fetched { request, folder });
        });
    }

    fn arrive(&mut self, fetched: Fetched) {
        // A sample may have been cancelled.
        let Some((flow, Waiting { build, mut job, .. })) = self.waiting.remove(&fetched.request) else { return };
        match fetched.folder {
            Ok(lease) => {
                let operation = build(lease.dir());
                job.reading = Some(lease);
                self.start_operation(fetched.request, flow, operation, job);
            }
            Err(error) => self.tell(fetched.request, job.finish(Err(error))),
        }
    }

    fn start_operation(&mut self, request: RequestId, flow: Flow, operation: Operation, job: Job) {
        self.started.insert(request.clone(), job);
        let id = request.clone();
        if self.guard("start", |engine| engine.start(id, flow, operation)).is_none() {
            self.abandon(&request);
        }
    }

    fn step(&mut self) {
        match self.guard("step", |engine| engine.step()) {
            Some(completions) => {
                self.panics = 0;
                for completion in completions {
                    self.finish(completion);
                }
            }
            None => {
                self.panics += 1;
                // The engine finds out by itself who is at fault in a batch; this happened elsewhere. Which of them was
                // at fault is unknown, and so is the state of what they touched.
                for request in self.started.keys().cloned().collect::<Vec<_>>() {
                    self.abandon(&request);
                }
                if self.given_up() {
                    tracing::error!(
                        "the engine panicked in {MAX_PANICS} steps in a row and is given up; the process ends"
                    );
                }
            }
        }
    }

    fn finish(&mut self, completion: Completion) {
        // A cancelled sample may still complete; nobody waits for it.
        let Some(job) = self.started.remove(&completion.id) else { return };
        if let Err(error) = &completion.result {
            tracing::debug!(request = %completion.id, %error, "a request failed");
        }
        let mut finished = job.finish(completion.result);
        if let Finished::Told(_, effects) = &mut finished {
            let marked = effects.iter().any(|effect| matches!(effect, Effect::RunFailed(_)));
            effects.extend(completion.lost_run.filter(|_| !marked).map(Effect::RunFailed));
        }
        self.tell(completion.id, finished);
    }

    fn tell(&self, request: RequestId, finished: Finished) {
        match finished {
            Finished::Told(outcome, effects) => self.mailbox.complete(request, outcome, effects),
            Finished::Later(encode) => self.mailbox.complete_encoded_by(request, encode),
            Finished::Saved(saved) => self.publish(request, saved),
        }
    }

    /// Stores a folder, and only then reports the save.
    fn publish(&self, request: RequestId, saved: Saved) {
        let (mailbox, workspace) = (Arc::clone(&self.mailbox), self.workspace.clone());
        self.runtime.spawn(async move {
            match fetching::publish(workspace, saved.written, saved.location).await {
                Ok(()) => mailbox.complete(request, saved.outcome, saved.effects),
                Err(error) => mailbox.complete(request, Outcome::Failed(error), Vec::new()),
            }
        });
    }

    /// Fails a request during which the engine panicked. Its run is in an unknown state, so it is unloaded and
    /// marked; other runs go on.
    fn abandon(&mut self, request: &RequestId) {
        let Some(job) = self.started.remove(request) else { return };
        let mut effects = Vec::new();
        match job.run {
            Some(run) => {
                self.guard("unload_run", |engine| engine.unload_run(&run));
                effects.push(Effect::RunFailed(run));
            }
            None => {
                self.guard("cancel", |engine| engine.cancel(request));
            }
        }
        let error = OpError::server("internal error in the engine; the server's log has the details");
        self.mailbox.complete(request.clone(), Outcome::Failed(error), effects);
    }

    /// Calls the engine; a panic is logged and gives `None`. The callers bring the engine's state in order.
    fn guard<T>(&mut self, call: &str, f: impl FnOnce(&mut dyn Engine) -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| f(self.engine.as_mut()))) {
            Ok(value) => Some(value),
            Err(panic) => {
                tracing::error!(call, panic = panic_text(&*panic), "the engine panicked");
                None
            }
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
#[path = "worker/tests.rs"]
mod tests;
