//! Decides whether a request is sent again, and after how long.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Longest `Retry-After` that is followed.
const LONGEST_ADVICE: Duration = Duration::from_secs(60);

/// Duration for which temporary failures are retried: lost connections, timeouts, 408, 429 and 5xx.
///
/// A request is repeated with the same numbers and the same idempotency key, so that the server executes it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    total: Duration,
    first_delay: Duration,
    longest_delay: Duration,
}

impl Default for RetryPolicy {
    /// Retries for five minutes, with delays from half a second to ten seconds.
    fn default() -> Self {
        Self {
            total: Duration::from_secs(300),
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(10),
        }
    }
}

impl RetryPolicy {
    /// Sends each request only once.
    pub fn none() -> Self {
        Self::default().total(Duration::ZERO)
    }

    /// Sets the time from the first attempt to the last.
    #[must_use]
    pub fn total(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Sets the time before the second attempt; it doubles before each later one.
    #[must_use]
    pub fn first_delay(mut self, delay: Duration) -> Self {
        self.first_delay = delay;
        self
    }

    /// Sets the longest time between two attempts, unless the server advises another.
    #[must_use]
    pub fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest_delay = delay;
        self
    }

    /// Returns the time to wait after an attempt, counted from 0: the server's advice, or a random part of the
    /// back-off.
    fn delay(&self, attempt: u32, advice: Option<Duration>) -> Duration {
        if let Some(advice) = advice.filter(|advice| !advice.is_zero() && *advice <= LONGEST_ADVICE) {
            return advice;
        }
        let doubled = self.first_delay.saturating_mul(2_u32.saturating_pow(attempt));
        // The standard library's hash keys are random: good enough to keep clients apart.
        let random = RandomState::new().hash_one(attempt) % 256;
        doubled.min(self.longest_delay).mul_f64(0.75 + random as f64 / 1024.0)
    }
}

/// The attempts of one request.
pub(crate) struct Attempts<'a> {
    policy: &'a RetryPolicy,
    end: Instant,
    count: u32,
}

impl<'a> Attempts<'a> {
    /// Starts the attempts. A deadline shortens the policy's time.
    pub(crate) fn new(policy: &'a RetryPolicy, deadline: Option<Instant>) -> Self {
        let end = Instant::now() + policy.total;
        Self { policy, end: deadline.map_or(end, |deadline| deadline.min(end)), count: 0 }
    }

    /// Returns the time until the next attempt, or `None` when the time is over. The last attempt is made at its end.
    pub(crate) fn next_delay(&mut self, advice: Option<Duration>) -> Option<Duration> {
        let delay = self.policy.delay(self.count, advice);
        self.count += 1;
        let left = self.end.saturating_duration_since(Instant::now());
        (left > Duration::from_millis(50)).then_some(delay.min(left))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Attempts, RetryPolicy};

    #[test]
    fn delays_double_up_to_the_longest_and_advice_is_followed_within_reason() {
        let policy = RetryPolicy::default();
        for (attempt, seconds) in [(0, 0.5), (1, 1.0), (3, 4.0), (5, 10.0), (500, 10.0)] {
            let delay = policy.delay(attempt, None).as_secs_f64();
            assert!(delay >= 0.75 * seconds && delay <= seconds, "{attempt}: {delay}");
        }
        assert_eq!(policy.delay(0, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert!(policy.delay(0, Some(Duration::from_secs(61))) < Duration::from_secs(1));
    }

    #[test]
    fn a_policy_without_time_has_one_attempt() {
        assert_eq!(Attempts::new(&RetryPolicy::none(), None).next_delay(None), None);
    }
}
