//! The worker's side; called from a plain thread.

use std::time::Duration;

use trainyard_protocol::RequestId;

use crate::{Effect, Outcome, Scheduler, WorkItem};

impl Scheduler {
    /// What is ready now: heads of runs in seq order (one in flight per run), samples in arrival order.
    pub fn take_work(&self) -> Vec<WorkItem> {
        Vec::new()
    }

    /// As [`Self::take_work`], but blocks the calling thread until something is ready or time is up.
    pub fn wait_work(&self, _timeout: Duration) -> Vec<WorkItem> {
        Vec::new()
    }

    /// Reports what came of a request. Returns at once; the run's next request is ready now, and
    /// waiters wake after the commit that holds outcome and effects together.
    pub fn complete(&self, _request: RequestId, _outcome: Outcome, _effects: Vec<Effect>) {}
}
