//! Effects of the queue's changes. The changes left in [`QueueEffects`] are recorded in the store, and payloads that
//! the queue needs are fetched.

use std::sync::Arc;

use crate::budgets::CHANGED_TOGETHER;
use crate::context::core::Core;
use crate::execution::memory_waits::RecordMemoryWait;
use crate::execution::quarantine::RecordIsolatedStart;
use crate::execution::rejection::RecordRejections;
use crate::lease::{ReleaseRun, ReleaseSamples};
use crate::queue::{Queue, QueueEffects};

impl Core {
    /// Changes the queue, then executes the effects. Records are sent under the lock, so that they reach the writer in
    /// the order of the changes.
    pub(crate) fn with_queue<T>(self: &Arc<Self>, change: impl FnOnce(&mut Queue) -> T) -> T {
        let (value, effects) = self.queue.change(change, |effects| self.record_effects(effects));
        self.follow_effects(effects);
        value
    }

    /// Sends the records of the effects, and returns the other effects.
    fn record_effects(&self, mut effects: QueueEffects) -> QueueEffects {
        let unrestorable = std::mem::take(&mut effects.unrestorable);
        let rejected = std::mem::take(&mut effects.rejected);
        RecordRejections::in_parts(unrestorable, rejected).into_iter().for_each(|part| self.record(part));
        for (session, requests) in std::mem::take(&mut effects.cancelled) {
            self.cancel_requests_of(&session, requests);
        }
        for (run, epoch) in effects.released_runs.drain(..) {
            self.record(ReleaseRun { run, epoch });
        }
        if let Some(request) = effects.isolated_start.take() {
            self.record(RecordIsolatedStart(request));
        }
        // In a single process, calls ask the queue itself.
        for (run, epoch, wait) in effects.memory_waits.drain(..).filter(|_| self.is_shared()) {
            self.record(RecordMemoryWait { run, epoch, wait });
        }
        for samples in std::mem::take(&mut effects.released_samples).chunks(CHANGED_TOGETHER) {
            self.record(ReleaseSamples { samples: samples.to_vec(), quiet: false });
        }
        effects
    }

    fn follow_effects(self: &Arc<Self>, effects: QueueEffects) {
        if effects.ready {
            self.queue.notify_worker();
        }
        if effects.has_capacity {
            self.claims.wake();
        }
        for fetch in effects.fetches {
            let core = Arc::clone(self);
            self.runtime.spawn(async move { core.fetch(fetch).await });
        }
    }
}
