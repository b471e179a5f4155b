//! Drains a process before it stops.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::scheduler::Scheduler;

/// Interval at which the queue is examined.
const POLL: Duration = Duration::from_millis(20);

impl Scheduler {
    /// Announces that this process is about to stop: its worker takes no new work.
    pub fn begin_drain(&self) {
        self.core.claims.stop();
    }

    /// Returns whether this process is about to stop.
    pub fn is_draining(&self) -> bool {
        self.core.claims.are_stopped()
    }

    /// Lets the worker of this process finish the requests in execution without taking new ones. Its runs are saved and
    /// released, so that their next worker replays nothing. Clients are still served. Returns whether everything was
    /// done within `limit`; unfinished requests are executed again.
    pub async fn drain(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        self.begin_drain();
        loop {
            // A claim may still have been in progress.
            let drained = self.core.with_queue(|queue| {
                queue.drain();
                queue.is_drained()
            });
            if drained || Instant::now() >= deadline {
                let (pending, in_flight) = self.core.queue.read().counts();
                tracing::info!(drained, pending, in_flight, "worker drained");
                return drained;
            }
            sleep(POLL).await;
        }
    }
}
