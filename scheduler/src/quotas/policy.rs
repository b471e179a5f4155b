//! The policy of a tenant, and the decisions that follow from it.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::{Quota, Refusal, TrainingLimits};

/// Retry time for a run: another one has to end first, which takes a while.
const RUN_RETRY: Duration = Duration::from_secs(10);
/// Shortest and longest retry time for a sample.
const SAMPLE_RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Weight, quotas and rate limit of a tenant. A quota that is absent is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantPolicy {
    /// Fair-share weight, relative to the other tenants that have work.
    pub weight: NonZeroU32,
    /// Runs that may live at once.
    pub max_runs: Option<NonZeroU64>,
    /// Tokens of accepted requests that have not finished, beyond which samples are rejected with 429.
    pub max_queued_tokens: Option<NonZeroU64>,
    /// The rate limit: tokens that its requests may start with per minute; a minute's worth may start at once.
    pub tokens_per_minute: Option<NonZeroU64>,
    /// Bytes of its checkpoints.
    pub max_storage_bytes: Option<NonZeroU64>,
    /// Training requests that may wait.
    pub training: TrainingLimits,
}

impl Default for TenantPolicy {
    /// A single share and no quotas but the bounds on what waits to be trained.
    fn default() -> Self {
        Self {
            weight: NonZeroU32::MIN,
            max_runs: None,
            max_queued_tokens: None,
            tokens_per_minute: None,
            max_storage_bytes: None,
            training: TrainingLimits::default(),
        }
    }
}

impl TenantPolicy {
    /// Whether a tenant with `live` runs may create another.
    ///
    /// # Errors
    /// [`Refusal`] of [`Quota::Runs`].
    pub fn admit_run(&self, live: u64) -> Result<(), Refusal> {
        match self.max_runs {
            Some(limit) if live >= limit.get() => {
                Err(Refusal { quota: Quota::Runs, limit: limit.get(), used: live, asked: 1, retry_after: RUN_RETRY })
            }
            _ => Ok(()),
        }
    }

    /// Whether a tenant whose unfinished requests have `queued` tokens may queue a sample of `tokens`. A sample that
    /// is larger than the quota is admitted when nothing else is queued, because it would never be otherwise.
    ///
    /// # Errors
    /// [`Refusal`] of [`Quota::QueuedTokens`].
    pub fn admit_sample(&self, queued: u64, tokens: u64) -> Result<(), Refusal> {
        match self.max_queued_tokens {
            Some(limit) if queued > 0 && queued.saturating_add(tokens) > limit.get() => Err(Refusal {
                quota: Quota::QueuedTokens,
                limit: limit.get(),
                used: queued,
                asked: tokens,
                retry_after: self.time_to_drain(queued.saturating_add(tokens) - limit.get()),
            }),
            _ => Ok(()),
        }
    }

    /// Whether a tenant with `stored` bytes of checkpoints may store about `bytes` more (0 when that is unknown).
    ///
    /// # Errors
    /// [`Refusal`] of [`Quota::StorageBytes`].
    pub fn admit_storage(&self, stored: u64, bytes: u64) -> Result<(), Refusal> {
        match self.max_storage_bytes {
            Some(limit) if stored.saturating_add(bytes.max(1)) > limit.get() => Err(Refusal {
                quota: Quota::StorageBytes,
                limit: limit.get(),
                used: stored,
                asked: bytes,
                retry_after: Duration::ZERO,
            }),
            _ => Ok(()),
        }
    }

    /// How long the tenant's rate limit takes for so many tokens, within the bounds of a sensible retry.
    fn time_to_drain(&self, tokens: u64) -> Duration {
        let (shortest, longest) = SAMPLE_RETRY;
        let Some(rate) = self.tokens_per_minute else { return shortest };
        let seconds = tokens.saturating_mul(60).div_ceil(rate.get());
        Duration::from_secs(seconds).clamp(shortest, longest)
    }
}
