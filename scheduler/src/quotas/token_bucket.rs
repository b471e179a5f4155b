//! A token bucket over a given clock.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::Timestamp;

/// A token is counted in this many units, one per millisecond of a minute, so that the bucket fills by whole units
/// in every millisecond and no rounding adds up.
const UNITS: i64 = 60_000;
/// The highest rate in tokens per minute, to which others are clamped; it keeps all sums far from overflow.
const MAX_RATE: u64 = 1 << 40;

/// How full a bucket was at some time, in units; below zero is a debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketLevel {
    pub(crate) units: i64,
    pub(crate) at: Timestamp,
}

/// Holds at most a minute's worth of tokens and fills steadily; below zero is a debt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// Tokens per minute, and so units per millisecond, and tokens that it holds at most.
    rate: i64,
    units: i64,
    /// When `units` was so.
    at: Timestamp,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn full(tokens_per_minute: NonZeroU64, now: Timestamp) -> Self {
        let rate = i64::try_from(tokens_per_minute.get().min(MAX_RATE)).unwrap_or(i64::MAX / UNITS);
        Self { rate, units: rate * UNITS, at: now }
    }

    /// A bucket as it was persisted.
    pub(crate) fn restored(tokens_per_minute: NonZeroU64, level: BucketLevel) -> Self {
        Self { units: level.units, at: level.at, ..Self::full(tokens_per_minute, level.at) }
    }

    /// The same level at another rate.
    pub(crate) fn at_rate(&self, tokens_per_minute: NonZeroU64, now: Timestamp) -> Self {
        let at = self.at.max(now);
        Self { units: self.units_at(at), at, ..Self::full(tokens_per_minute, at) }
    }

    /// In units: the capacity of a tenant's bucket, its refill per millisecond, and the value of so many tokens.
    pub(crate) fn units_of(tokens_per_minute: NonZeroU64, tokens: u64) -> (i64, i64, i64) {
        let Self { rate, units: capacity, .. } = Self::full(tokens_per_minute, Timestamp(0));
        (capacity, rate, units(tokens))
    }

    /// When a request of `tokens` may start; not later than `now` when it may at once. One that is larger than the
    /// bucket may when the bucket is full.
    pub(crate) fn ready_at(&self, tokens: u64, now: Timestamp) -> Timestamp {
        let missing = units(tokens).min(self.capacity()) - self.units_at(now);
        if missing <= 0 {
            return now;
        }
        let millis = u64::try_from(missing).unwrap_or(0).div_ceil(u64::try_from(self.rate).unwrap_or(1).max(1));
        self.at.max(now).plus(Duration::from_millis(millis))
    }

    /// Takes the tokens of a request, whether or not they are there.
    pub(crate) fn take(&mut self, tokens: u64, now: Timestamp) {
        self.units = self.units_at(now).saturating_sub(units(tokens));
        self.at = self.at.max(now);
    }

    /// Whole tokens that it holds.
    #[cfg(test)]
    pub(crate) fn tokens(&self, now: Timestamp) -> i64 {
        self.units_at(now).div_euclid(UNITS)
    }

    fn capacity(&self) -> i64 {
        self.rate * UNITS
    }

    /// A clock that was set back adds nothing.
    fn units_at(&self, now: Timestamp) -> i64 {
        let elapsed = now.0.saturating_sub(self.at.0).max(0);
        self.units.saturating_add(elapsed.saturating_mul(self.rate)).min(self.capacity())
    }
}

fn units(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX).saturating_mul(UNITS)
}
