//! The thread that joins scheduler and engine: it takes work, executes it in the engine's bounded steps, and
//! reports what came of it. HTTP never waits for it.

mod job;
mod loads;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use job::{Finished, Job, Prepared};
use trainyard_protocol::{Completion, Engine, Flow, OpError, Operation, RequestId, TenantId, TinkerPath};
use trainyard_scheduler::{Effect, Encode, Error, Outcome, Scheduler, Work, WorkItem};

/// How long an idle worker waits before it looks whether it shall stop. Work wakes it at once.
const IDLE_WAIT: Duration = Duration::from_millis(200);

/// Steps in a row that may panic before the engine is given up.
const MAX_PANICS: u32 = 3;

/// Where work comes from and results go.
pub trait Mailbox: Send + 'static {
    /// What is ready now.
    fn take_work(&self) -> Vec<WorkItem>;
    /// What is ready, waiting for it.
    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem>;
    /// Whether the tenant has a checkpoint of this path.
    fn has_checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<bool, Error>;
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

    fn has_checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<bool, Error> {
        Self::has_checkpoint(self, tenant, path)
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

/// Starts the worker. Checkpoints are kept under `data_dir`.
///
/// # Errors
/// When the system gives no thread.
pub fn spawn(mailbox: impl Mailbox, engine: Box<dyn Engine>, data_dir: PathBuf) -> io::Result<WorkerHandle> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let mut worker = Worker { mailbox, engine, data_dir, started: BTreeMap::new(), panics: 0 };
    let thread = thread::Builder::new().name("worker".to_owned()).spawn(move || worker.run(&stopped))?;
    Ok(WorkerHandle { stop, thread })
}

struct Worker<M> {
    mailbox: M,
    engine: Box<dyn Engine>,
    data_dir: PathBuf,
    started: BTreeMap<RequestId, Job>,
    /// Panics of consecutive steps.
    panics: u32,
}

impl<M: Mailbox> Worker<M> {
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let busy = !self.given_up() && !self.engine.is_idle();
            let items = if busy { self.mailbox.take_work() } else { self.mailbox.wait_work(IDLE_WAIT) };
            for item in items {
                self.accept(item);
            }
            if !self.given_up() && !self.engine.is_idle() {
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
                self.guard("cancel", |engine| engine.cancel(&request));
            }
            WorkItem::UnloadRun(run) => {
                self.guard("unload_run", |engine| engine.unload_run(&run));
                loads::forget(&self.data_dir, &run);
            }
            WorkItem::DropSnapshot(key) => {
                self.guard("drop_snapshot", |engine| engine.drop_snapshot(&key));
            }
        }
    }

    fn start(&mut self, work: Work) {
        let request = work.request.clone();
        if self.given_up() {
            let error = OpError::server("the engine stopped after internal errors; the server must be restarted");
            return self.mailbox.complete(request, Outcome::Failed(error), Vec::new());
        }
        let creates = work.seq_id == 0;
        let run = work.run.clone();
        let flow = Flow::new(work.tenant.as_str());
        match job::prepare(work, &self.data_dir, &self.mailbox) {
            Ok(Prepared::Start(operation, job)) => self.start_operation(request, flow, *operation, *job),
            Ok(Prepared::Done(outcome, effects)) => self.mailbox.complete(request, outcome, effects),
            Err(error) => {
                let effects = run.filter(|_| creates).map(Effect::RunFailed).into_iter().collect();
                self.mailbox.complete(request, Outcome::Failed(error), effects);
            }
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
                    tracing::error!("the engine panicked in {MAX_PANICS} steps in a row and is given up");
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
        match job.finish(completion.result) {
            Finished::Told(outcome, mut effects) => {
                let marked = effects.iter().any(|effect| matches!(effect, Effect::RunFailed(_)));
                effects.extend(completion.lost_run.filter(|_| !marked).map(Effect::RunFailed));
                self.mailbox.complete(completion.id, outcome, effects);
            }
            Finished::Later(encode) => self.mailbox.complete_encoded_by(completion.id, encode),
        }
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
