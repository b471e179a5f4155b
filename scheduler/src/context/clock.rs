//! Time as an argument of the program.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A time in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time as the standard library has it; the epoch if it is earlier.
    pub(crate) fn system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }

    /// Returns the time `duration` later; the last representable time on overflow.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Returns the duration until a later time; zero if that time is earlier.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }

    /// Returns the time `duration` earlier; the first representable time on overflow.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

/// Returns a duration in milliseconds; the largest number on overflow.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A source of the present time.
pub trait Clock: Send + Sync {
    /// Returns the present time of this clock.
    fn now(&self) -> Timestamp;
}

/// Clock of the machine's operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(millis(since_epoch))
    }
}
