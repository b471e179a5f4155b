//! The policy of a tenant, and its decisions.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::{Quota, Refusal, TrainingLimits};
use crate::budgets::SESSIONS;

/// Retry time for a run: another run must end first, which takes a while.
const RUN_RETRY: Duration = Duration::from_secs(10);
/// Retry time for a session: others must be deleted first, which takes hours.
const SESSION_RETRY: Duration = Duration::from_secs(600);
/// Shortest and longest retry time for a sample.
const SAMPLE_RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Weight, quotas and rate limit of a tenant. An absent quota means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantPolicy {
    /// Fair-share weight, relative to the other tenants that have work.
    pub weight: NonZeroU32,
    /// Maximum number of live runs at the same time.
    pub max_runs: Option<NonZeroU64>,
    /// Tokens of accepted, unfinished requests beyond which samples are rejected with 429.
    pub max_queued_tokens: Option<NonZeroU64>,
    /// Tokens that its requests may start with per minute; a minute's worth may start at once.
    pub tokens_per_minute: Option<NonZeroU64>,
    /// Maximum number of bytes of its checkpoints.
    pub max_storage_bytes: Option<NonZeroU64>,
    /// Unfinished samples beyond which further ones are rejected with 429.
    pub max_queued_samples: Option<NonZeroU64>,
    /// Maximum number of sessions that are open, or that ended within the retention time.
    pub max_sessions: NonZeroU64,
    /// Pixels of images that it may send to an API server per minute; a minute's worth may come at once.
    pub pixels_per_minute: Option<NonZeroU64>,
    /// Bounds on waiting training requests.
    pub training: TrainingLimits,
}

impl Default for TenantPolicy {
    /// Returns a policy with weight 1, and without quotas except the bounds on sessions and on waiting training requests.
    fn default() -> Self {
        Self {
            weight: NonZeroU32::MIN,
            max_runs: None,
            max_queued_tokens: None,
            tokens_per_minute: None,
            max_storage_bytes: None,
            max_queued_samples: None,
            max_sessions: NonZeroU64::new(SESSIONS).unwrap_or(NonZeroU64::MAX),
            pixels_per_minute: None,
            training: TrainingLimits::default(),
        }
    }
}

impl TenantPolicy {
    /// Checks whether a tenant with `live` runs may create another.
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

    /// Checks whether a tenant with `kept` sessions, which are open or ended within the retention time, may create
    /// another.
    ///
    /// # Errors
    /// [`Refusal`] of [`Quota::Sessions`].
    pub fn admit_session(&self, kept: u64) -> Result<(), Refusal> {
        let limit = self.max_sessions.get();
        if kept < limit {
            return Ok(());
        }
        Err(Refusal { quota: Quota::Sessions, limit, used: kept, asked: 1, retry_after: SESSION_RETRY })
    }

    /// Checks whether a tenant with `open` unfinished samples may submit another.
    ///
    /// # Errors
    /// [`Refusal`] of [`Quota::QueuedSamples`].
    pub fn admit_queued(&self, open: u64) -> Result<(), Refusal> {
        match self.max_queued_samples {
            Some(limit) if open >= limit.get() => {
                let (retry_after, _) = SAMPLE_RETRY;
                Err(Refusal { quota: Quota::QueuedSamples, limit: limit.get(), used: open, asked: 1, retry_after })
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a tenant whose unfinished requests have `queued` tokens may queue a sample of `tokens`. A sample
    /// that is larger than the quota is admitted when nothing else is queued, because otherwise it would never be.
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

    /// Checks whether a tenant with `stored` bytes of checkpoints may store about `bytes` more (0 if that is unknown).
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

    /// Returns the time that the tenant's rate limit takes for `tokens`, within the bounds of a sensible retry.
    fn time_to_drain(&self, tokens: u64) -> Duration {
        let (shortest, longest) = SAMPLE_RETRY;
        let Some(rate) = self.tokens_per_minute else { return shortest };
        let seconds = tokens.saturating_mul(60).div_ceil(rate.get());
        Duration::from_secs(seconds).clamp(shortest, longest)
    }
}
