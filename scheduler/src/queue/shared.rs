//! The queue as the tasks of a process share it.

use std::ops::Deref;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::context::lock::lock;
use crate::queue::{Queue, QueueEffects};

/// The queue behind a lock, and a signal for the worker.
pub(crate) struct SharedQueue {
    queue: Mutex<Queue>,
    /// Signalled when the queue has something for the worker.
    ready: Condvar,
}

impl SharedQueue {
    pub(crate) fn new(queue: Queue) -> Self {
        Self { queue: Mutex::new(queue), ready: Condvar::new() }
    }

    /// Locks the queue for reading; it does not change while the result is held.
    pub(crate) fn read(&self) -> impl Deref<Target = Queue> {
        lock(&self.queue)
    }

    /// Changes the queue. Its effects are passed to `record` under the lock, which returns those that remain.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Queue) -> T,
        record: impl FnOnce(QueueEffects) -> QueueEffects,
    ) -> (T, QueueEffects) {
        let mut queue = lock(&self.queue);
        let value = change(&mut queue);
        (value, record(queue.take_effects()))
    }

    /// Lets the worker look at the queue.
    pub(crate) fn notify_worker(&self) {
        self.ready.notify_all();
    }

    /// Blocks the thread until the worker is notified, for at most the time that `pause` returns; `None` if it need not
    /// wait.
    pub(crate) fn wait(&self, pause: impl FnOnce(&Queue) -> Option<Duration>) {
        let queue = lock(&self.queue);
        if let Some(pause) = pause(&queue) {
            drop(self.ready.wait_timeout(queue, pause).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
