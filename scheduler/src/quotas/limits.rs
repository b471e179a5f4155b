//! What an organisation may be granted, by name: as the configuration file has it, and as the store has it.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use super::{TenantPolicy, TrainingLimits};
use crate::types::text_enum;

/// The largest weight: enough to distinguish tenants, and small enough that one turn stays short.
const MAX_WEIGHT: u64 = 1_000;

text_enum!(
    /// Something that is granted to an organisation; [`Limit::as_str`] is its name in the configuration file, in the store,
    /// on the command line and in the API.
    Limit {
        /// Fair-share weight, relative to the other tenants that have work.
        Weight = "weight",
        /// Runs that may live at once.
        MaxRuns = "max_runs",
        /// Tokens of accepted requests that have not finished.
        MaxQueuedTokens = "max_queued_tokens",
        /// Tokens that its requests may start with per minute.
        TokensPerMinute = "tokens_per_minute",
        /// Bytes of its checkpoints.
        MaxStorageBytes = "max_storage_bytes",
        /// Training requests that have not finished.
        MaxQueuedRequests = "max_queued_requests",
        /// Bytes of their payloads.
        MaxQueuedBytes = "max_queued_bytes",
    }
);

/// A value that a limit can't have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: must be from 1 to {}, not {given}", limit.as_str(), limit.largest())]
pub struct LimitOutOfRange {
    /// The limit.
    pub limit: Limit,
    /// What it can't be.
    pub given: u64,
}

impl Limit {
    /// The largest value that it can have; the smallest is 1.
    pub fn largest(self) -> u64 {
        match self {
            Self::Weight => MAX_WEIGHT,
            // As large as the columns of the store.
            _ => i64::MAX.unsigned_abs(),
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// When it is 0, or too large.
    pub fn value(self, given: u64) -> Result<NonZeroU64, LimitOutOfRange> {
        let value = NonZeroU64::new(given).filter(|value| value.get() <= self.largest());
        value.ok_or(LimitOutOfRange { limit: self, given })
    }
}

/// Changes of limits: the value that each gets, or `None` where it is unset.
pub type LimitChanges = BTreeMap<Limit, Option<NonZeroU64>>;

/// Limits that are set; the others are as without them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantLimits(BTreeMap<Limit, NonZeroU64>);

impl TenantLimits {
    /// The value of a limit, if it is set.
    pub fn get(&self, limit: Limit) -> Option<NonZeroU64> {
        self.0.get(&limit).copied()
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets or unsets limits.
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

    /// What is granted by these limits, and otherwise by `others`.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let mut joined = others.0.clone();
        joined.extend(&self.0);
        Self(joined)
    }

    /// The policy that follows from these limits, and otherwise from `default`.
    pub fn policy(&self, default: TenantPolicy) -> TenantPolicy {
        let weight = self.get(Limit::Weight).and_then(|weight| NonZeroU32::try_from(weight).ok());
        TenantPolicy {
            weight: weight.unwrap_or(default.weight),
            max_runs: self.get(Limit::MaxRuns).or(default.max_runs),
            max_queued_tokens: self.get(Limit::MaxQueuedTokens).or(default.max_queued_tokens),
            tokens_per_minute: self.get(Limit::TokensPerMinute).or(default.tokens_per_minute),
            max_storage_bytes: self.get(Limit::MaxStorageBytes).or(default.max_storage_bytes),
            training: TrainingLimits {
                requests: self.get(Limit::MaxQueuedRequests).unwrap_or(default.training.requests),
                bytes: self.get(Limit::MaxQueuedBytes).unwrap_or(default.training.bytes),
                ..default.training
            },
        }
    }
}

impl FromIterator<(Limit, NonZeroU64)> for TenantLimits {
    fn from_iter<I: IntoIterator<Item = (Limit, NonZeroU64)>>(limits: I) -> Self {
        Self(limits.into_iter().collect())
    }
}
