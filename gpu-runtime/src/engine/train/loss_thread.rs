//! Custom losses that are too costly for a pass to wait for. They are evaluated on a separate thread, one request at a
//! time, while the engine continues; a later pass computes their gradients. Bits are the same either way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trainyard_protocol::{LossFn, OpError, PreparedDatum, RequestId};

use super::task::TrainTask;
use crate::backend::Backend;
use crate::collective::Ranks;
use crate::engine::saves::background::Background;
use crate::interrupt::{self, Interrupt};
use crate::loss::{LossValue, evaluate_until};

/// Gives the thread a quarter of a core that the engine also needs. At the engine's own priority a pass, whose threads
/// wait for each other, takes twice as long.
const NICENESS: i32 = 5;

/// Elements that the custom losses of a pass may cost before they are postponed.
pub(super) struct Allowance {
    /// Elements whatever the size of the pass.
    pub(super) base: usize,
    /// Elements for each token of the pass, which take less time than the token itself.
    pub(super) per_token: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { base: 1 << 18, per_token: 1 << 8 }
    }
}

impl Allowance {
    /// That of a pass of so many tokens.
    pub(super) fn of_pass(&self, tokens: usize) -> usize {
        tokens.saturating_mul(self.per_token).saturating_add(self.base)
    }
}

/// A datum whose loss is to be evaluated beside the engine.
pub(super) struct PostponedLoss {
    /// Index of the datum in its request.
    pub(super) index: usize,
    pub(super) datum: Arc<PreparedDatum>,
    /// Those of its targets.
    pub(super) logprobs: Vec<f32>,
}

/// Losses by index of the datum, up to the first one that fails.
type Losses = Vec<(usize, Result<LossValue, OpError>)>;

/// Evaluates postponed losses. Tenants take turns.
pub(super) struct LossThread {
    thread: Background<RequestId, Losses>,
    /// The tenant whose losses were evaluated last.
    last: Option<Arc<str>>,
    /// Whether the engine has ended, which waits for the thread.
    is_over: Arc<AtomicBool>,
}

impl LossThread {
    /// A thread on each of these ranks, which evaluate the losses of a request at once.
    pub(super) fn on(ranks: &Ranks) -> Self {
        let thread = Background::new("evaluation of custom losses").with_niceness(NICENESS).on(ranks);
        Self { thread, last: None, is_over: Arc::default() }
    }

    /// The request whose losses are evaluated, with its losses, if they are within `wait`.
    pub(super) fn finished(&mut self, wait: Duration) -> Option<(RequestId, Result<Losses, OpError>)> {
        self.thread.finished(wait)
    }

    /// Ends the evaluation of the losses of these requests, which are gone.
    pub(super) fn cancel(&mut self, requests: &BTreeSet<RequestId>) {
        self.thread.cancel_if(|request| requests.contains(request));
    }

    /// Evaluates losses of the next tenant's oldest request that awaits them, unless others are being evaluated.
    /// `interrupt_of` tells when a request was abandoned.
    ///
    /// # Errors
    /// The server's, with the request, when the thread cannot be started.
    pub(super) fn start_next<B: Backend>(
        &mut self,
        tasks: &mut [TrainTask<B>],
        interrupt_of: impl Fn(&RequestId) -> Interrupt,
    ) -> Result<(), (RequestId, OpError)> {
        if !self.thread.is_idle() {
            return Ok(());
        }
        let Some(next) = self.next(tasks) else { return Ok(()) };
        let task = &mut tasks[next];
        self.last = Some(Arc::clone(&task.share.name));
        let (id, loss, postponed) = (task.id.clone(), task.loss.clone(), task.take_postponed());
        let (abandoned, is_over) = (interrupt_of(&id), Arc::clone(&self.is_over));
        let is_set =
            move |cancelled: &Interrupt| is_over.load(Ordering::Relaxed) || cancelled.is_set() || abandoned.is_set();
        let job = move || {
            let cancelled = interrupt::current();
            Ok(evaluate_all(&loss, postponed, &Interrupt::new(move || is_set(&cancelled))))
        };
        self.thread.start(id.clone(), Box::new(job)).map_err(|error| (id, error))
    }

    /// Index of the first waiting request of the tenant that follows the last one by name.
    fn next<B: Backend>(&self, tasks: &[TrainTask<B>]) -> Option<usize> {
        let waiting = || tasks.iter().enumerate().filter(|(_, task)| !task.is_ready());
        let name = |(_, task): &(usize, &TrainTask<B>)| Arc::clone(&task.share.name);
        let after = waiting().filter(|task| self.last.as_ref().is_none_or(|last| name(task) > *last)).min_by_key(name);
        after.or_else(|| waiting().min_by_key(name)).map(|(at, _)| at)
    }
}

impl Drop for LossThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn evaluate_all(loss: &LossFn, postponed: Vec<PostponedLoss>, interrupt: &Interrupt) -> Losses {
    let mut losses = Losses::new();
    for PostponedLoss { index, datum, logprobs } in postponed {
        let value = evaluate_until(loss, &datum, &logprobs, interrupt);
        let fails = value.is_err();
        losses.push((index, value));
        if fails {
            break;
        }
    }
    losses
}
