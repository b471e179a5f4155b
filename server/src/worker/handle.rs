//! The handle of a running worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two looks whether a worker has ended.
const WATCH: Duration = Duration::from_millis(5);

/// Handle of a running worker.
pub struct WorkerHandle {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl WorkerHandle {
    pub(super) fn new(stop: Arc<AtomicBool>, thread: JoinHandle<()>) -> Self {
        Self { stop, thread }
    }

    /// Asks the worker to finish its current step and take no more work. Started but unfinished requests are executed
    /// again after the next start.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Returns whether the worker's thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the worker and waits for its thread.
    pub fn join(self) {
        self.stop();
        if self.thread.join().is_err() {
            tracing::error!("the worker's thread panicked");
        }
    }

    /// Stops the worker and waits for its thread, but not longer than `limit`. A step that takes longer ends with the
    /// process, which has to follow: its requests are executed again after the next start. Returns whether the thread has
    /// ended.
    pub fn join_within(self, limit: Duration) -> bool {
        self.stop();
        let end = Instant::now() + limit;
        while !self.is_finished() {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(WATCH);
        }
        self.join();
        true
    }
}
