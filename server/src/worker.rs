//! The thread that joins scheduler and engine: it takes work, executes it in the engine's bounded steps, and reports
//! the results. HTTP never waits for it.

mod arrivals;
mod dispatch;
mod folders;
mod handle;
mod images;
mod mailbox;
mod model_images;
mod prefetch;
mod progress;
mod recorded_metrics;
mod reply;
mod save_attempt;
mod waiting_saves;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use arrivals::Arrival;
use dispatch::{Dispatch, Dispatcher};
use folders::WaitingForFolder;
pub use handle::WorkerHandle;
use images::ImageGate;
pub use images::{ImagePool, PoolSettings};
pub use mailbox::Mailbox;
pub use model_images::ModelImages;
pub use prefetch::prefetch;
use progress::ProgressReports;
use reply::{CompletionOutcome, PendingReply, WrittenFolder};
use save_attempt::SaveAttempt;
use tokio::runtime::Handle;
use trainyard_protocol::{Completion, Engine, OpError, Operation, Prepare, RequestId, TenantShare};
use trainyard_scheduler::{Effect, Outcome, Work, WorkItem};
use waiting_saves::WaitingSaves;

use crate::random::Random;
use crate::workspace::Workspace;

/// Time that an idle worker waits before it checks for a stop. Work wakes it at once.
const IDLE_WAIT: Duration = Duration::from_millis(200);

/// Time that a worker waits while folders are being fetched.
const FETCH_WAIT: Duration = Duration::from_millis(2);

/// Number of consecutive steps that may panic before the worker stops.
const MAX_PANICS: u32 = 3;

/// Dependencies of a worker.
pub struct WorkerDeps {
    /// Engine that executes the operations.
    pub engine: Box<dyn Engine>,
    /// Folders that the engine writes and reads.
    pub workspace: Workspace,
    /// Runtime on which folders move to and from the storage.
    pub runtime: Handle,
    /// Source of the random bits that make names of folders unique.
    pub random: Random,
    /// Rules by which the engine's models accept images.
    pub images: Arc<ModelImages>,
    /// Threads that decode images.
    pub image_pool: ImagePool,
    /// Bytes that decoded images may take until their requests end.
    pub image_memory: u64,
}

/// Starts the worker on a thread of its own.
///
/// # Errors
/// Fails if the system can't start a thread.
pub fn spawn(mailbox: impl Mailbox, deps: WorkerDeps) -> io::Result<WorkerHandle> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let WorkerDeps { mut engine, workspace, runtime, random, images, image_pool, image_memory } = deps;
    // Metrics are right before the first request.
    mailbox.observe_engine(engine.stats());
    let (arrived, arrivals) = channel();
    let mailbox = Arc::new(mailbox);
    let asked = Arc::clone(&mailbox);
    engine.ask_when_abandoned(Arc::new(move |request| asked.is_abandoned(request)));
    let mut worker = Worker {
        mailbox,
        preparer: engine.preparer(),
        arithmetic: engine.numerics().into_iter().map(|(model, numerics)| (model, numerics.arithmetic())).collect(),
        engine,
        workspace,
        runtime,
        random,
        images,
        image_pool: Arc::new(image_pool),
        started: BTreeMap::new(),
        waiting: BTreeMap::new(),
        decoding: BTreeMap::new(),
        image_gate: ImageGate::new(image_memory),
        saves: WaitingSaves::default(),
        progress: ProgressReports::default(),
        arrived,
        arrivals,
        panics: 0,
    };
    let thread = thread::Builder::new().name("worker".to_owned()).spawn(move || worker.run(&stopped))?;
    Ok(WorkerHandle::new(stop, thread))
}

struct Worker<M> {
    mailbox: Arc<M>,
    engine: Box<dyn Engine>,
    preparer: Arc<dyn Prepare>,
    /// Description of the engine's arithmetic, by base model.
    arithmetic: BTreeMap<String, String>,
    workspace: Workspace,
    runtime: Handle,
    random: Random,
    images: Arc<ModelImages>,
    image_pool: Arc<ImagePool>,
    started: BTreeMap<RequestId, PendingReply>,
    /// Requests whose folders are being fetched.
    waiting: BTreeMap<RequestId, (TenantShare, WaitingForFolder)>,
    /// Requests whose images are not decoded yet.
    decoding: BTreeMap<RequestId, Work>,
    image_gate: ImageGate,
    saves: WaitingSaves,
    progress: ProgressReports,
    arrived: Sender<Arrival>,
    arrivals: Receiver<Arrival>,
    /// Panics in consecutive steps.
    panics: u32,
}

impl<M: Mailbox> Worker<M> {
    fn run(&mut self, stop: &AtomicBool) {
        // When the worker stops, the process ends: pending requests are executed after its next start, or by another
        // worker.
        while !stop.load(Ordering::Acquire) && !self.has_failed() {
            let busy = !self.engine.is_idle();
            let idle = self.waiting.is_empty() && self.decoding.is_empty();
            let wait = if idle { IDLE_WAIT } else { FETCH_WAIT };
            let items = if busy { self.mailbox.take_work() } else { self.mailbox.wait_work(wait) };
            self.cancel(&items);
            for item in items {
                self.accept(item);
            }
            self.mailbox.observe_engine(self.engine.stats());
            while let Ok(arrival) = self.arrivals.try_recv() {
                self.arrive(arrival);
            }
            self.decode_images();
            for (request, reply) in self.saves.due() {
                if let Some(save) = reply.save.clone() {
                    self.start_operation(request, save.share, save.operation, reply);
                }
            }
            if !self.engine.is_idle() {
                self.step();
            }
        }
        // It may also have failed while it was idle: a rank that is a process was lost.
        if let Some(failure) = self.engine.failure() {
            tracing::error!(%failure, "worker stopping: the engine cannot go on; the process ends");
        } else if self.panics >= MAX_PANICS {
            tracing::error!("worker stopping: the engine panicked in {MAX_PANICS} consecutive steps; the process ends");
        }
    }

    fn has_failed(&self) -> bool {
        self.panics >= MAX_PANICS || self.engine.failure().is_some()
    }

    /// Cancels samples: all at once, because a session that ends may have had thousands.
    fn cancel(&mut self, items: &[WorkItem]) {
        let cancelled = items.iter().filter_map(|item| match item {
            WorkItem::Cancel(request) => Some(request.clone()),
            _ => None,
        });
        let cancelled: BTreeSet<RequestId> = cancelled.collect();
        if cancelled.is_empty() {
            return;
        }
        for request in &cancelled {
            self.started.remove(request);
            self.waiting.remove(request);
            self.decoding.remove(request);
        }
        self.guard("cancel", |engine| engine.cancel(&cancelled));
    }

    fn accept(&mut self, item: WorkItem) {
        match item {
            WorkItem::Start(work) => self.start(work),
            WorkItem::Cancel(_) => {}
            WorkItem::Abandon(request) => self.end_abandoned(&request),
            WorkItem::UnloadRun(run) => {
                // Nobody waits for their results.
                self.started.retain(|_, reply| reply.run.as_ref() != Some(&run));
                self.waiting.retain(|_, (_, waiting)| waiting.reply.run.as_ref() != Some(&run));
                self.decoding.retain(|_, work| work.run.as_ref() != Some(&run));
                self.saves.forget(&run);
                self.guard("unload_run", |engine| engine.unload_run(&run));
            }
            WorkItem::DropSnapshot(key) => {
                self.guard("drop_snapshot", |engine| engine.drop_snapshot(&key));
            }
        }
    }

    fn start(&mut self, work: Work) {
        let request = work.request.clone();
        let creates = work.seq_id == 0 && !work.kind.is_maintenance();
        let run = work.run.clone();
        let share = TenantShare { name: work.tenant.as_str().into(), weight: self.mailbox.weight(&work.tenant) };
        let (workspace, random, arithmetic) = (&self.workspace, &*self.random, &self.arithmetic);
        let (preparer, images) = (&*self.preparer, &*self.images);
        let dispatcher = Dispatcher { workspace, preparer, images, random, arithmetic };
        match dispatcher.dispatch(work) {
            Ok(Dispatch::Start(operation, reply)) => self.start_operation(request, share, *operation, *reply),
            Ok(Dispatch::Wait(waiting)) => self.fetch(request, share, *waiting),
            Ok(Dispatch::Decode(undecoded)) => self.decode(share, *undecoded),
            Err(error) => {
                let effects = run.filter(|_| creates).map(Effect::RunFailed).into_iter().collect();
                self.mailbox.complete(request, Outcome::Failed(error), effects);
            }
        }
    }

    fn start_operation(
        &mut self,
        request: RequestId,
        share: TenantShare,
        operation: Operation,
        mut reply: PendingReply,
    ) {
        if reply.is_save() && reply.save.is_none() {
            reply.save = Some(Box::new(SaveAttempt::first(share.clone(), operation.clone())));
        }
        self.started.insert(request.clone(), reply);
        let id = request.clone();
        if self.guard("start", |engine| engine.start(id, share, operation)).is_none() {
            self.abandon(&request);
        }
    }

    fn step(&mut self) {
        match self.guard("step", |engine| engine.step()) {
            Some(completions) => {
                self.panics = 0;
                let admitted = self.engine.take_admitted();
                if !admitted.is_empty() {
                    self.mailbox.samples_admitted(&admitted);
                }
                for completion in completions {
                    self.finish(completion);
                }
                self.report_progress(Instant::now());
            }
            None => {
                self.panics += 1;
                // The engine isolates the request at fault within a batch; this happened elsewhere. Which request was
                // at fault is unknown, and so is the state of what they touched.
                for request in self.started.keys().cloned().collect::<Vec<_>>() {
                    self.abandon(&request);
                }
            }
        }
    }

    /// Reports the new tokens of watched samples.
    fn report_progress(&mut self, now: Instant) {
        if !self.progress.is_due(now) {
            return;
        }
        let watched = self.mailbox.watched_samples();
        if watched.is_empty() {
            return;
        }
        let mut progress = std::mem::take(&mut self.progress);
        let reports = self.guard("sampled_since", |engine| progress.collect(engine, watched, now));
        self.progress = progress;
        for (request, tokens) in reports.unwrap_or_default() {
            self.mailbox.report_progress(&request, tokens);
        }
    }

    fn finish(&mut self, completion: Completion) {
        // A cancelled sample may still complete; nobody waits for it.
        let Some(reply) = self.started.remove(&completion.id) else { return };
        if let Err(error) = &completion.result {
            tracing::debug!(request = %completion.id, %error, "a request failed");
        }
        let reply = match &completion.result {
            Err(error) if completion.lost_run.is_none() => match self.saves.keep(&completion.id, reply, error) {
                Some(reply) => reply,
                None => return,
            },
            _ => reply,
        };
        let mut outcome = reply.finish(completion.result);
        if let CompletionOutcome::Report(_, effects) = &mut outcome {
            let marked = effects.iter().any(|effect| matches!(effect, Effect::RunFailed(_)));
            effects.extend(completion.lost_run.filter(|_| !marked).map(Effect::RunFailed));
        }
        self.report(completion.id, outcome);
    }

    fn report(&self, request: RequestId, outcome: CompletionOutcome) {
        match outcome {
            CompletionOutcome::Report(outcome, effects) => self.mailbox.complete(request, outcome, effects),
            CompletionOutcome::Encode(measured, encode) => self.mailbox.complete_encoded_by(request, measured, encode),
            CompletionOutcome::Publish(folder) => self.publish(request, folder),
        }
    }

    /// Stores a folder, encrypted if required, and reports the save only afterwards.
    fn publish(&self, request: RequestId, folder: WrittenFolder) {
        let (mailbox, workspace) = (Arc::clone(&self.mailbox), self.workspace.clone());
        self.runtime.spawn(async move {
            match folders::publish(workspace, folder).await {
                Ok((outcome, effects)) => mailbox.complete(request, outcome, effects),
                Err(error) => mailbox.complete(request, Outcome::Failed(error), Vec::new()),
            }
        });
    }

    /// Fails a request during which the engine panicked. The state of its run is unknown, so the run is unloaded and
    /// marked; other runs continue.
    fn abandon(&mut self, request: &RequestId) {
        let Some(reply) = self.started.remove(request) else { return };
        let mut effects = Vec::new();
        match reply.run {
            Some(run) => {
                self.guard("unload_run", |engine| engine.unload_run(&run));
                effects.push(Effect::RunFailed(run));
            }
            None => {
                self.guard("cancel", |engine| engine.cancel(&[request.clone()].into()));
            }
        }
        let error = OpError::server("internal error in the engine; the server's log has the details");
        self.mailbox.complete(request.clone(), Outcome::Failed(error), effects);
    }

    /// Ends a request of a run whose session ended. Its run is as it was before it.
    fn end_abandoned(&mut self, request: &RequestId) {
        let waiting = self.waiting.remove(request).map(|(_, waiting)| waiting.reply);
        let reply = self.started.remove(request).or(waiting).or_else(|| self.saves.take(request));
        let error = OpError::user("its session ended");
        let outcome = match reply {
            Some(reply) => reply.finish(Err(error)),
            None if self.decoding.remove(request).is_some() => {
                CompletionOutcome::Report(Outcome::Failed(error), Vec::new())
            }
            // It has completed in the meantime, or its folder is being stored.
            None => return,
        };
        self.guard("cancel", |engine| engine.cancel(&[request.clone()].into()));
        self.report(request.clone(), outcome);
    }

    /// Calls the engine. A panic is logged and gives `None`; the callers restore the engine's state.
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
