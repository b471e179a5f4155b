//! A token bucket over an explicit clock.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::Timestamp;

/// Units that represent one token, one per millisecond of a minute. The bucket fills by whole units in every
/// millisecond, so that rounding errors can't accumulate.
const UNITS: i64 = 60_000;
/// Highest rate in tokens per minute, to which others are clamped; it keeps all sums far from overflow.
const MAX_RATE: u64 = 1 << 40;

/// Level of a bucket at some time, in units; below zero is a debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketLevel {
    pub(crate) units: i64,
    pub(crate) at: Timestamp,
}

/// A bucket that contains at most a minute's worth of tokens and fills steadily; below zero is a debt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// Tokens per minute, which is also the units per millisecond, and the most tokens in the bucket.
    rate: i64,
    units: i64,
    /// Time at which the level was `units`.
    at: Timestamp,
}

impl TokenBucket {
    /// Returns a full bucket.
    pub(crate) fn full(tokens_per_minute: NonZeroU64, now: Timestamp) -> Self {
        let rate = i64::try_from(tokens_per_minute.get().min(MAX_RATE)).unwrap_or(i64::MAX / UNITS);
        Self { rate, units: rate * UNITS, at: now }
    }

    /// Returns a bucket as it was persisted.
    pub(crate) fn restored(tokens_per_minute: NonZeroU64, level: BucketLevel) -> Self {
        Self { units: level.units, at: level.at, ..Self::full(tokens_per_minute, level.at) }
    }

    /// Returns a bucket with the same level at another rate.
    pub(crate) fn at_rate(&self, tokens_per_minute: NonZeroU64, now: Timestamp) -> Self {
        let at = self.at.max(now);
        Self { units: self.units_at(at), at, ..Self::full(tokens_per_minute, at) }
    }

    /// Returns in units: the capacity of a tenant's bucket, its refill per millisecond, and the value of `tokens`.
    pub(crate) fn units_of(tokens_per_minute: NonZeroU64, tokens: u64) -> (i64, i64, i64) {
        let Self { rate, units: capacity, .. } = Self::full(tokens_per_minute, Timestamp(0));
        (capacity, rate, units(tokens))
    }

    /// Returns the time when a request of `tokens` may start, at most `now` if it may start at once. A request larger
    /// than the bucket may start when the bucket is full.
    pub(crate) fn ready_at(&self, tokens: u64, now: Timestamp) -> Timestamp {
        let missing = units(tokens).min(self.capacity()) - self.units_at(now);
        if missing <= 0 {
            return now;
        }
        let millis = u64::try_from(missing).unwrap_or(0).div_ceil(u64::try_from(self.rate).unwrap_or(1).max(1));
        self.at.max(now).plus(Duration::from_millis(millis))
    }

    /// Takes the tokens of a request, whether or not they are available.
    pub(crate) fn take(&mut self, tokens: u64, now: Timestamp) {
        self.units = self.units_at(now).saturating_sub(units(tokens));
        self.at = self.at.max(now);
    }

    /// Returns the whole tokens in the bucket.
    #[cfg(test)]
    pub(crate) fn tokens(&self, now: Timestamp) -> i64 {
        self.units_at(now).div_euclid(UNITS)
    }

    fn capacity(&self) -> i64 {
        self.rate * UNITS
    }

    /// Returns the units at a time. A clock that was set back adds nothing.
    fn units_at(&self, now: Timestamp) -> i64 {
        let elapsed = now.0.saturating_sub(self.at.0).max(0);
        self.units.saturating_add(elapsed.saturating_mul(self.rate)).min(self.capacity())
    }
}

fn units(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX).saturating_mul(UNITS)
}
