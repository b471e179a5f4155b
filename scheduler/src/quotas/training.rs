//! Bounds on waiting training requests: unfinished requests to runs, and the bytes of their payloads.

use std::num::NonZeroU64;
use std::time::Duration;

use super::{Quota, Refusal};

/// Retry time: earlier requests take a while, and clients give up after some minutes.
const RETRY: Duration = Duration::from_secs(5);

/// Limits on waiting training requests, per run and per tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingLimits {
    /// Maximum number of unfinished requests of a run.
    pub run_requests: NonZeroU64,
    /// Maximum number of bytes of the payloads of a run's unfinished requests.
    pub run_bytes: NonZeroU64,
    /// Maximum number of unfinished requests of all runs of a tenant.
    pub requests: NonZeroU64,
    /// Maximum number of bytes of the payloads of these requests.
    pub bytes: NonZeroU64,
    /// Largest distance of a request's seq_id from the first one of its run that is missing.
    pub seq_gap: NonZeroU64,
}

impl Default for TrainingLimits {
    fn default() -> Self {
        let some = |limit| NonZeroU64::new(limit).unwrap_or(NonZeroU64::MAX);
        Self {
            run_requests: some(4_096),
            run_bytes: some(4 << 30),
            requests: some(32_768),
            bytes: some(16 << 30),
            seq_gap: some(4_096),
        }
    }
}

/// Waiting training requests when a new request of a run arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueuedTraining {
    pub(crate) run_requests: u64,
    pub(crate) run_bytes: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Lowest seq_id of the run's unfinished requests.
    pub(crate) first: Option<i64>,
}

impl TrainingLimits {
    /// Checks whether a request with a payload of `bytes` may join the waiting ones.
    pub(crate) fn admit(&self, queued: &QueuedTraining, bytes: u64) -> Result<(), Refusal> {
        for (quota, limit, used, asked) in [
            (Quota::RunQueuedRequests, self.run_requests, queued.run_requests, 1),
            (Quota::RunQueuedBytes, self.run_bytes, queued.run_bytes, bytes),
            (Quota::QueuedRequests, self.requests, queued.requests, 1),
            (Quota::QueuedBytes, self.bytes, queued.bytes, bytes),
        ] {
            let limit = limit.get();
            if used.saturating_add(asked) > limit {
                return Err(Refusal { quota, limit, used, asked, retry_after: RETRY });
            }
        }
        Ok(())
    }

    /// Checks whether a request may take a position so far behind the run's first unfinished request.
    pub(crate) fn admit_behind(&self, queued: &QueuedTraining, seq_id: i64) -> Result<(), Refusal> {
        let Some(first) = queued.first else { return Ok(()) };
        let (behind, limit) =
            (seq_id.saturating_sub(first), self.run_requests.saturating_add(self.seq_gap.get()).get());
        match u64::try_from(behind) {
            Ok(used) if used >= limit => {
                Err(Refusal { quota: Quota::RunQueuedRequests, limit, used, asked: 1, retry_after: RETRY })
            }
            _ => Ok(()),
        }
    }

    /// Returns the bound on the gap, in the type of a seq_id.
    pub(crate) fn gap(&self) -> i64 {
        i64::try_from(self.seq_gap.get()).unwrap_or(i64::MAX)
    }
}
