//! Draining: what a process does before it stops.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::context::core::Core;
use crate::context::lock::lock;
use crate::scheduler::Scheduler;

/// How often the queue is looked at.
const POLL: Duration = Duration::from_millis(20);

impl Scheduler {
    /// Announces that this process is about to stop: its worker takes nothing new.
    pub fn begin_drain(&self) {
        self.core.draining.store(true, Ordering::Release);
    }

    /// Whether this process is about to stop.
    pub fn is_draining(&self) -> bool {
        self.core.is_draining()
    }

    /// Lets the worker of this process finish what it executes and take nothing new; its runs are saved and released, so
    /// that whoever gets them next, this process after its restart or another one, replays nothing. Clients are
    /// served meanwhile. Returns whether all of that was done within `limit`; what was not is executed again.
    pub async fn drain(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.begin_drain();
        loop {
            // A claim may still have been on its way.
            let drained = self.core.with_queue(|queue| {
                queue.drain();
                queue.is_drained()
            });
            if drained || Instant::now() >= deadline {
                let (pending, in_flight) = lock(&self.core.queue).counts();
                tracing::info!(drained, pending, in_flight, "worker drained");
                return drained;
            }
            sleep(POLL).await;
        }
    }
}

impl Core {
    /// Whether the worker of this process takes nothing new.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}
