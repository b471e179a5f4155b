//! The database's clock, by which everything expires and is deleted: a process whose own clock is wrong must not delete
//! what others still need.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::context::clock::{Clock, Timestamp};
use crate::context::lock::lock;
use crate::context::options::Options;

/// Difference from which a reading replaces the former one. Smaller ones come from the time that a reading takes.
const TOLERANCE: Duration = Duration::from_millis(250);

/// Difference of the clocks from which the log warns.
pub(crate) const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// The clock of a PostgreSQL server, which is read every few seconds. In between, the machine's monotonic clock continues
/// it, so that setting the process's own clock changes nothing. A SQLite file has no other clock than the process's own.
pub(crate) struct DatabaseClock {
    own: Arc<dyn Clock>,
    reading: Mutex<Option<Reading>>,
    /// Stands in for the clock of a server.
    fixed: Option<Arc<dyn Clock>>,
}

#[derive(Clone, Copy)]
struct Reading {
    time: Timestamp,
    at: Instant,
    /// Lead of the process's own clock, in ms.
    own_ahead_ms: i64,
}

impl DatabaseClock {
    pub(crate) fn new(options: &Options) -> Self {
        #[cfg(test)]
        let fixed = options.database_clock.clone();
        #[cfg(not(test))]
        let fixed = None;
        Self { own: Arc::clone(&options.clock), reading: Mutex::default(), fixed }
    }

    /// Returns whether another clock stands in for that of the server.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// Takes over a reading that was asked for at `asked`, and has just arrived.
    pub(crate) fn set(&self, time: Timestamp, asked: Instant) {
        let at = Instant::now();
        let time = time.plus(at.duration_since(asked) / 2);
        let own_ahead_ms = self.own.now().as_millis().saturating_sub(time.as_millis());
        let mut reading = lock(&self.reading);
        let former =
            reading.map(|former| (differ(former.own_ahead_ms), former.time.plus(at.duration_since(former.at))));
        let (differed, expected) = former.map_or((false, None), |(differed, expected)| (differed, Some(expected)));
        if differ(own_ahead_ms) && !differed {
            tracing::warn!(
                own_ahead_ms,
                "this machine's clock differs from the database's clock, which decides when things expire: synchronise it"
            );
        }
        // Kept as it was, time does not go back by a few milliseconds.
        let time = expected.filter(|expected| is_near(*expected, time)).unwrap_or(time);
        *reading = Some(Reading { time, at, own_ahead_ms });
    }

    /// Returns the lead of the process's own clock over the database's when that was last read, in ms.
    pub(crate) fn own_ahead_ms(&self) -> i64 {
        lock(&self.reading).map_or(0, |reading| reading.own_ahead_ms)
    }

    /// Returns the time of the process's own clock.
    pub(crate) fn own_now(&self) -> Timestamp {
        self.own.now()
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        if let Some(fixed) = &self.fixed {
            return fixed.now();
        }
        match *lock(&self.reading) {
            Some(Reading { time, at, .. }) => time.plus(at.elapsed()),
            None => self.own.now(),
        }
    }
}

fn differ(own_ahead_ms: i64) -> bool {
    u128::from(own_ahead_ms.unsigned_abs()) > CLOCKS_DIFFER.as_millis()
}

fn is_near(one: Timestamp, other: Timestamp) -> bool {
    one.until(other) <= TOLERANCE && other.until(one) <= TOLERANCE
}

#[cfg(test)]
mod tests {
    use trainyard_storage::Storage;

    use super::*;

    struct Own(i64);

    impl Clock for Own {
        fn now(&self) -> Timestamp {
            Timestamp(self.0)
        }
    }

    fn clock(own: i64) -> DatabaseClock {
        let options = Options::new(std::path::Path::new("unused"), Storage::in_memory());
        DatabaseClock::new(&Options { clock: Arc::new(Own(own)), ..options })
    }

    #[test]
    fn a_reading_replaces_the_own_clock_and_time_goes_on_from_it() {
        let clock = clock(5_000_000);
        assert_eq!((clock.now(), clock.own_ahead_ms()), (Timestamp(5_000_000), 0));
        clock.set(Timestamp(1_000_000), Instant::now());
        let first = clock.now();
        assert!((1_000_000..1_010_000).contains(&first.as_millis()), "{first:?}");
        assert!((3_990_000..=4_000_000).contains(&clock.own_ahead_ms()));
        std::thread::sleep(Duration::from_millis(5));
        assert!(clock.now() >= first.plus(Duration::from_millis(5)));
    }

    #[test]
    fn a_slightly_earlier_reading_does_not_turn_time_back_and_another_clock_does() {
        let clock = clock(0);
        clock.set(Timestamp(1_000_000), Instant::now());
        clock.set(Timestamp(999_900), Instant::now());
        assert!(clock.now() >= Timestamp(1_000_000));
        clock.set(Timestamp(400_000), Instant::now());
        assert!(clock.now() < Timestamp(500_000));
    }
}
