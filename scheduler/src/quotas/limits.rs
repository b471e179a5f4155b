//! Limits of an organisation by name, in the form of the configuration file and of the store.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use super::{TenantPolicy, TrainingLimits};
use crate::types::text_enum;

/// Largest weight: enough to distinguish tenants, and small enough that one turn stays short.
const MAX_WEIGHT: u64 = 1_000;

text_enum!(
    /// A limit of an organisation; [`Limit::as_str`] is its name in the configuration file, in the store, on the
    /// command line and in the API.
    Limit {
        /// Fair-share weight, relative to the other tenants that have work.
        Weight = "weight",
        /// Maximum number of live runs at the same time.
        MaxRuns = "max_runs",
        /// Maximum number of tokens of accepted, unfinished requests.
        MaxQueuedTokens = "max_queued_tokens",
        /// Maximum number of tokens that its requests may start with per minute.
        TokensPerMinute = "tokens_per_minute",
        /// Maximum number of bytes of its checkpoints.
        MaxStorageBytes = "max_storage_bytes",
        /// Maximum number of unfinished training requests.
        MaxQueuedRequests = "max_queued_requests",
        /// Maximum number of bytes of the payloads of unfinished training requests.
        MaxQueuedBytes = "max_queued_bytes",
        /// Maximum number of unfinished samples.
        MaxQueuedSamples = "max_queued_samples",
        /// Maximum number of sessions that are open, or whose requests are kept.
        MaxSessions = "max_sessions",
        /// Maximum number of pixels of images that it may send to an API server per minute.
        PixelsPerMinute = "pixels_per_minute",
    }
);

/// A value that a limit can't have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: must be from 1 to {}, not {given}", limit.as_str(), limit.largest())]
pub struct LimitOutOfRange {
    /// Limit that was to be set.
    pub limit: Limit,
    /// Value that was given.
    pub given: u64,
}

impl Limit {
    /// Returns the largest possible value; the smallest is 1.
    pub fn largest(self) -> u64 {
        match self {
            Self::Weight => MAX_WEIGHT,
            // The largest number that the store's columns can contain.
            _ => i64::MAX.unsigned_abs(),
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The value is 0, or too large.
    pub fn value(self, given: u64) -> Result<NonZeroU64, LimitOutOfRange> {
        let value = NonZeroU64::new(given).filter(|value| value.get() <= self.largest());
        value.ok_or(LimitOutOfRange { limit: self, given })
    }
}

/// Changes of limits: the new value of each, or `None` to unset it.
pub type LimitChanges = BTreeMap<Limit, Option<NonZeroU64>>;

/// Limits that are set; all others are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantLimits(BTreeMap<Limit, NonZeroU64>);

impl TenantLimits {
    /// Returns the value of a limit, if it is set.
    pub fn get(&self, limit: Limit) -> Option<NonZeroU64> {
        self.0.get(&limit).copied()
    }

    /// Returns whether all limits are unset.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets or unsets limits, and returns the result.
    #[must_use]
    pub fn changed(mut self, changes: &LimitChanges) -> Self {
        for (limit, value) in changes {
            match value {
                Some(value) => self.0.insert(*limit, *value),
                None => self.0.remove(limit),
            };
        }
        self
    }

    /// Returns these limits, completed by `others`.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let mut joined = others.0.clone();
        joined.extend(&self.0);
        Self(joined)
    }

    /// Returns the policy of these limits, completed by `default`.
    pub fn policy(&self, default: TenantPolicy) -> TenantPolicy {
        let weight = self.get(Limit::Weight).and_then(|weight| NonZeroU32::try_from(weight).ok());
        TenantPolicy {
            weight: weight.unwrap_or(default.weight),
            max_runs: self.get(Limit::MaxRuns).or(default.max_runs),
            max_queued_tokens: self.get(Limit::MaxQueuedTokens).or(default.max_queued_tokens),
            tokens_per_minute: self.get(Limit::TokensPerMinute).or(default.tokens_per_minute),
            max_storage_bytes: self.get(Limit::MaxStorageBytes).or(default.max_storage_bytes),
            max_queued_samples: self.get(Limit::MaxQueuedSamples).or(default.max_queued_samples),
            max_sessions: self.get(Limit::MaxSessions).unwrap_or(default.max_sessions),
            pixels_per_minute: self.get(Limit::PixelsPerMinute).or(default.pixels_per_minute),
            training: TrainingLimits {
                requests: self.get(Limit::MaxQueuedRequests).unwrap_or(default.training.requests),
                bytes: self.get(Limit::MaxQueuedBytes).unwrap_or(default.training.bytes),
                ..default.training
            },
        }
    }
}

impl TenantPolicy {
    /// Returns the value of a limit; `None` if the policy does not limit it.
    pub fn get(&self, limit: Limit) -> Option<NonZeroU64> {
        match limit {
            Limit::Weight => Some(NonZeroU64::from(self.weight)),
            Limit::MaxRuns => self.max_runs,
            Limit::MaxQueuedTokens => self.max_queued_tokens,
            Limit::TokensPerMinute => self.tokens_per_minute,
            Limit::MaxStorageBytes => self.max_storage_bytes,
            Limit::MaxQueuedSamples => self.max_queued_samples,
            Limit::MaxSessions => Some(self.max_sessions),
            Limit::PixelsPerMinute => self.pixels_per_minute,
            Limit::MaxQueuedRequests => Some(self.training.requests),
            Limit::MaxQueuedBytes => Some(self.training.bytes),
        }
    }
}

impl FromIterator<(Limit, NonZeroU64)> for TenantLimits {
    fn from_iter<I: IntoIterator<Item = (Limit, NonZeroU64)>>(limits: I) -> Self {
        Self(limits.into_iter().collect())
    }
}
