//! Whether the store can be written, for health checks.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use trainyard_scheduler::Scheduler;

/// Longest duration of a write.
const LIMIT: Duration = Duration::from_secs(2);

/// Time for which an outcome is reported again: health checks need no key, so they must not cost a write each.
const AGE: Duration = Duration::from_secs(1);

/// The outcome of the last write, shared by all health checks.
#[derive(Default)]
pub(crate) struct StoreProbe(Mutex<Option<(Instant, &'static str)>>);

impl StoreProbe {
    /// Returns `ok` or the problem. Writes unless there is a recent outcome; one write is made at a time.
    pub(crate) async fn outcome(&self, scheduler: &Scheduler) -> &'static str {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = *last
            && at.elapsed() < AGE
        {
            return outcome;
        }
        let outcome = match timeout(LIMIT, scheduler.probe_write()).await {
            Ok(Ok(())) => "ok",
            Ok(Err(_)) | Err(_) => "can't be written",
        };
        *last = Some((Instant::now(), outcome));
        outcome
    }
}
