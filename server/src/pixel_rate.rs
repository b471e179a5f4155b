//! Rate limit on the pixels of images that each tenant may send per minute, because decoding costs time outside the
//! engine.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use trainyard_protocol::TenantId;
use trainyard_scheduler::Timestamp;

use crate::error::ApiError;

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;
/// Number of tenants from which on those with a full bucket are forgotten.
const MANY: usize = 1_024;

/// Rate limits of a process. A bucket per tenant contains at most a minute's worth of pixels and fills steadily.
#[derive(Default)]
pub(crate) struct PixelRate {
    buckets: Mutex<BTreeMap<TenantId, Bucket>>,
}

/// Level of a bucket at some time.
#[derive(Clone, Copy)]
struct Bucket {
    pixels: u64,
    at: Timestamp,
    /// Pixels per minute, which the bucket contains when it is full.
    rate: u64,
}

impl Bucket {
    fn pixels_at(self, now: Timestamp) -> u64 {
        let elapsed = u64::try_from(now.0.saturating_sub(self.at.0)).unwrap_or(0);
        let filled = u128::from(elapsed) * u128::from(self.rate) / u128::from(MINUTE_MS);
        self.pixels.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX)).min(self.rate)
    }

    fn is_full(self, now: Timestamp) -> bool {
        self.pixels_at(now) == self.rate
    }
}

impl PixelRate {
    /// Takes the pixels of a request from the bucket of a tenant with the limit `per_minute`; without a limit nothing is refused.
    /// A request with more pixels than the bucket contains when full takes all of them. A new limit continues from the bucket's
    /// present level.
    ///
    /// # Errors
    /// Fails with 429 while the tenant's bucket does not contain the pixels.
    pub(crate) fn take(
        &self,
        tenant: &TenantId,
        per_minute: Option<NonZeroU64>,
        pixels: u64,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let Some(rate) = per_minute.map(NonZeroU64::get).filter(|_| pixels > 0) else { return Ok(()) };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MANY {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let left = match buckets.get(tenant) {
            Some(bucket) if !bucket.is_full(now) => bucket.pixels_at(now).min(rate),
            _ => rate,
        };
        let taken = pixels.min(rate);
        let Some(rest) = left.checked_sub(taken) else {
            let seconds = u128::from(taken - left) * 60;
            let retry_after_seconds = u32::try_from(seconds.div_ceil(u128::from(rate))).unwrap_or(u32::MAX);
            let message = format!(
                "the images of this request have {pixels} pixels, and {left} of {rate} pixels per minute are left; try again"
            );
            return Err(ApiError::Busy { message, retry_after_seconds });
        };
        buckets.insert(tenant.clone(), Bucket { pixels: rest, at: now, rate });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000)
    }

    #[test]
    fn pixels_per_minute_are_bounded_per_tenant() {
        let (rate, limit) = (PixelRate::default(), NonZeroU64::new(600));
        let (one, other) = (TenantId::new("one"), TenantId::new("other"));
        rate.take(&one, limit, 500, at(0)).unwrap();
        let ApiError::Busy { message, retry_after_seconds } = rate.take(&one, limit, 300, at(0)).unwrap_err() else {
            unreachable!("the rate is used up")
        };
        assert_eq!(
            message,
            "the images of this request have 300 pixels, and 100 of 600 pixels per minute are left; try again"
        );
        assert_eq!(retry_after_seconds, 20);
        rate.take(&other, limit, 600, at(0)).unwrap();
        assert!(rate.take(&one, limit, 300, at(19)).is_err());
        rate.take(&one, limit, 300, at(20)).unwrap();
        // Nothing else was taken in the meantime.
        assert!(rate.take(&one, limit, 1, at(20)).is_err());
    }

    #[test]
    fn a_request_above_a_minute_takes_a_full_bucket() {
        let (rate, limit) = (PixelRate::default(), NonZeroU64::new(600));
        let tenant = TenantId::new("t");
        rate.take(&tenant, limit, 6_000, at(0)).unwrap();
        assert!(rate.take(&tenant, limit, 6_000, at(59)).is_err());
        rate.take(&tenant, limit, 6_000, at(60)).unwrap();
    }

    #[test]
    fn another_limit_continues_from_the_level_of_the_bucket() {
        let (rate, tenant) = (PixelRate::default(), TenantId::new("t"));
        let [small, large] = [600, 6_000].map(NonZeroU64::new);
        rate.take(&tenant, small, 600, at(0)).unwrap();
        assert!(rate.take(&tenant, large, 301, at(30)).is_err());
        rate.take(&tenant, large, 300, at(30)).unwrap();
        assert!(rate.take(&tenant, large, 3_001, at(60)).is_err(), "half of it is filled");
        rate.take(&tenant, small, 600, at(60)).unwrap();
        // Full under one limit is full under another.
        rate.take(&tenant, large, 6_000, at(120)).unwrap();
    }

    #[test]
    fn without_a_limit_or_images_nothing_is_refused() {
        let (rate, tenant) = (PixelRate::default(), TenantId::new("t"));
        rate.take(&tenant, None, u64::MAX, at(0)).unwrap();
        rate.take(&tenant, NonZeroU64::new(1), 1, at(0)).unwrap();
        rate.take(&tenant, NonZeroU64::new(1), 0, at(0)).unwrap();
    }
}
