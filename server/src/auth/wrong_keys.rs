//! Back-off of sources that send wrong keys.
//!
//! A source that has sent [`WRONG_KEYS`] wrong keys waits longer and longer between two attempts. Until then its keys
//! are not looked up, so that the answers reveal nothing about them. Keys that were accepted from the same source
//! before are never delayed, so that others who share an address with a guesser are not affected.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trainyard_protocol::TenantId;

use crate::budgets::{WRONG_KEYS, WRONG_KEYS_SOURCES, WRONG_KEYS_WAIT};

/// The delay after that many wrong keys; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The time after the last wrong key from which a source has sent none.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// The time for which a right key is remembered with its source.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The sender of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The caller of a request, by its address.
    Address(IpAddr),
    /// A tenant that names the key of another one.
    Tenant(TenantId),
}

type Digest = [u8; 32];

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
    /// The time from which the next key is looked up.
    until: Instant,
}

#[derive(Default)]
struct Tables {
    failures: HashMap<Source, Failures>,
    right: HashMap<(Source, Digest), Instant>,
}

/// Sources that sent wrong keys lately, and the right keys of all sources. Both tables are bounded.
#[derive(Default)]
pub(super) struct WrongKeys(Mutex<Tables>);

impl WrongKeys {
    /// Decides whether a key is looked up. Of several attempts after a delay only the first is.
    ///
    /// # Errors
    /// Returns the time to wait.
    pub(super) fn admit(&self, source: &Source, key: &Digest, now: Instant) -> Result<(), Duration> {
        let mut tables = self.tables();
        let Some(known) = tables.failures.get(source).copied() else { return Ok(()) };
        let is_free = known.count < WRONG_KEYS || now.duration_since(known.last) >= FORGOTTEN_AFTER;
        let right = tables.right.get(&(source.clone(), *key));
        if is_free || right.is_some_and(|since| now.duration_since(*since) < KNOWN_FOR) {
            return Ok(());
        }
        if now < known.until {
            return Err(known.until - now);
        }
        let next = Failures { until: now + wait_after(known.count), ..known };
        tables.failures.insert(source.clone(), next);
        Ok(())
    }

    /// Remembers that a key of a source was right.
    pub(super) fn was_right(&self, source: Source, key: Digest, now: Instant) {
        let right = &mut self.tables().right;
        let key = (source, key);
        match right.get_mut(&key) {
            Some(since) => *since = now,
            None => {
                make_room(right, KNOWN_FOR, |since| now.duration_since(*since));
                right.insert(key, now);
            }
        }
    }

    /// Counts a wrong key; returns how many the source has sent.
    pub(super) fn was_wrong(&self, source: Source, now: Instant) -> u32 {
        let failures = &mut self.tables().failures;
        if !failures.contains_key(&source) {
            make_room(failures, FORGOTTEN_AFTER, |known| now.duration_since(known.last));
        }
        let known = failures.entry(source).or_insert(Failures { count: 0, last: now, until: now });
        if now.duration_since(known.last) >= FORGOTTEN_AFTER {
            known.count = 0;
        }
        let count = known.count.saturating_add(1);
        *known = Failures { count, last: now, until: now + wait_after(count) };
        count
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the delay after a number of wrong keys.
fn wait_after(count: u32) -> Duration {
    match count.checked_sub(WRONG_KEYS) {
        None => Duration::ZERO,
        Some(more) => FIRST_WAIT.saturating_mul(1 << more.min(16)).min(WRONG_KEYS_WAIT),
    }
}

/// Removes the oldest entries of a full table: those that are forgotten, else ever newer ones.
fn make_room<K: Eq + Hash, V>(table: &mut HashMap<K, V>, longest: Duration, age: impl Fn(&V) -> Duration) {
    let mut longest = longest;
    while table.len() >= WRONG_KEYS_SOURCES {
        table.retain(|_, value| age(value) < longest);
        longest /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(last: u32) -> Source {
        Source::Address(IpAddr::from(last.to_be_bytes()))
    }

    #[test]
    fn after_many_wrong_keys_a_source_waits_longer_and_longer() {
        let (keys, start) = (WrongKeys::default(), Instant::now());
        for count in 1..=WRONG_KEYS {
            assert_eq!(keys.admit(&address(1), &[0; 32], start), Ok(()));
            assert_eq!(keys.was_wrong(address(1), start), count);
        }
        assert_eq!(keys.admit(&address(1), &[0; 32], start), Err(SECOND));
        assert_eq!(keys.admit(&address(2), &[0; 32], start), Ok(()));
        let mut now = start;
        for seconds in [1, 2, 4, 8, 16, 32, 32, 32] {
            now += Duration::from_secs(seconds);
            assert_eq!(keys.admit(&address(1), &[0; 32], now), Ok(()), "{seconds}");
            // Others that come at the same time wait for the next turn.
            assert!(keys.admit(&address(1), &[1; 32], now).is_err());
            keys.was_wrong(address(1), now);
        }
        now += FORGOTTEN_AFTER;
        assert_eq!(keys.admit(&address(1), &[0; 32], now), Ok(()));
        assert_eq!(keys.was_wrong(address(1), now), 1);
    }

    #[test]
    fn keys_that_were_right_from_an_address_are_never_delayed_there() {
        let (keys, start) = (WrongKeys::default(), Instant::now());
        keys.was_right(address(1), [7; 32], start);
        for source in [address(1), address(2)] {
            (0..WRONG_KEYS + 10).for_each(|_| _ = keys.was_wrong(source.clone(), start));
        }
        assert_eq!(keys.admit(&address(1), &[7; 32], start), Ok(()));
        assert!(keys.admit(&address(1), &[8; 32], start).is_err());
        assert!(keys.admit(&address(2), &[7; 32], start).is_err());
        let later = start + KNOWN_FOR;
        (0..=WRONG_KEYS).for_each(|_| _ = keys.was_wrong(address(1), later));
        assert!(keys.admit(&address(1), &[7; 32], later).is_err());
    }

    #[test]
    fn the_tables_are_bounded_and_forget_the_oldest() {
        let (keys, start) = (WrongKeys::default(), Instant::now());
        let flood = 2 * WRONG_KEYS_SOURCES as u32;
        for (second, last) in (0..flood).enumerate() {
            let now = start + SECOND * (second as u32) / 64;
            keys.was_wrong(address(last), now);
            keys.was_right(address(last), [0; 32], now);
        }
        let tables = keys.tables();
        assert!(tables.failures.len() <= WRONG_KEYS_SOURCES && tables.right.len() <= WRONG_KEYS_SOURCES);
        assert!(tables.failures.contains_key(&address(flood - 1)) && !tables.failures.contains_key(&address(0)));
    }
}
