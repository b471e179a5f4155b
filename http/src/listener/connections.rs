//! Counts of open connections, in all and per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::min_rate::MinRate;
use crate::open_files;
use crate::peer::client_of;

/// Default limit on open connections, if the process may open enough files.
pub const CONNECTIONS: usize = 16_384;
/// The time in which the header of a request must arrive.
pub const HEADER_TIME: Duration = Duration::from_secs(60);

/// The limit on open files that is assumed if the system does not tell it.
const USUAL_DESCRIPTORS: usize = 1_024;

/// Minimum time between two log lines about refusals.
const LOG_PERIOD: Duration = Duration::from_secs(10);

/// Bounds on the number, the headers and the rate of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of open connections in all.
    pub total: usize,
    /// Maximum number of open connections from one address; for IPv6 from one /64, which a host usually gets.
    pub per_address: usize,
    /// The time in which the header of a request must arrive, from the start of a connection or the end of the last
    /// request.
    pub header_timeout: Duration,
    /// The rate at which clients must read answers.
    pub min_rate: MinRate,
}

impl Default for ConnectionLimits {
    /// Three quarters of the files that the process may open, and three quarters of that per address: the other files
    /// are the store's and the storage's.
    fn default() -> Self {
        let total = (three_quarters(descriptors())).clamp(1, CONNECTIONS);
        Self {
            total,
            per_address: three_quarters(total).max(1),
            header_timeout: HEADER_TIME,
            min_rate: MinRate::default(),
        }
    }
}

fn three_quarters(of: usize) -> usize {
    of - of / 4
}

/// Returns how many files the process may open.
pub fn descriptors() -> usize {
    match open_files::limit(Path::new("/proc/self")).as_deref() {
        Some("unlimited") => usize::MAX,
        Some(number) => number.parse().unwrap_or(USUAL_DESCRIPTORS),
        None => USUAL_DESCRIPTORS,
    }
}

/// The reason why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Too many connections are open in all.
    #[error("{0} connections are open, the most that this server accepts; try again")]
    Total(usize),
    /// Too many connections are open from this address.
    #[error("{0} connections are open from this address, the most that it may have; try again")]
    Address(usize),
}

impl Full {
    /// Returns the limit that is reached.
    pub fn limit(self) -> usize {
        match self {
            Self::Total(limit) | Self::Address(limit) => limit,
        }
    }
}

/// The counters of open connections.
pub(super) struct Connections {
    limits: ConnectionLimits,
    open: Arc<Mutex<Open>>,
    start: Instant,
    /// The time until which refusals are not logged, in milliseconds from the start.
    silent_until: AtomicU64,
}

#[derive(Default)]
struct Open {
    total: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// An open connection, which counts until it is dropped.
pub(super) struct Admitted {
    open: Arc<Mutex<Open>>,
    client: IpAddr,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, open: Arc::default(), start: Instant::now(), silent_until: AtomicU64::new(0) }
    }

    /// Counts a connection, or returns the limit that it would exceed.
    pub(super) fn admit(&self, address: IpAddr) -> Result<Admitted, Full> {
        let client = client_of(address);
        let mut open = lock(&self.open);
        if open.total >= self.limits.total {
            return Err(Full::Total(self.limits.total));
        }
        let own = open.by_client.entry(client).or_default();
        if *own >= self.limits.per_address {
            return Err(Full::Address(self.limits.per_address));
        }
        *own += 1;
        open.total += 1;
        Ok(Admitted { open: Arc::clone(&self.open), client })
    }

    /// Returns whether a refusal should be logged: the first one in a while.
    pub(super) fn refused(&self) -> bool {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let next = now.saturating_add(LOG_PERIOD.as_millis() as u64);
        now >= self.silent_until.load(Ordering::Relaxed) && {
            self.silent_until.store(next, Ordering::Relaxed);
            true
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.total = open.total.saturating_sub(1);
        if let Some(own) = open.by_client.get_mut(&self.client) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.by_client.remove(&self.client);
            }
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn connections_count_in_all_and_per_client_until_they_end() {
        let limits = ConnectionLimits {
            total: 3,
            per_address: 2,
            header_timeout: Duration::from_secs(1),
            min_rate: MinRate::default(),
        };
        let connections = Connections::new(limits);
        let from = |address: &str| connections.admit(address.parse().unwrap());
        let first = from("10.0.0.1").unwrap();
        let _second = from("::ffff:10.0.0.1").unwrap();
        assert_eq!(from("10.0.0.1").err(), Some(Full::Address(2)));
        let third = from("2001:db8::1").unwrap();
        assert_eq!(from("10.0.0.2").err(), Some(Full::Total(3)));
        drop(first);
        let _fourth = from("2001:db8::ffff").unwrap();
        drop(third);
        assert!(from("2001:db8::2").is_ok());
        assert!(from("10.0.0.1").is_ok());
        assert_eq!(lock(&connections.open).total, 2);
        assert_eq!(lock(&connections.open).by_client.len(), 2);
    }

    #[test]
    fn the_defaults_leave_descriptors_for_others() {
        let limits = ConnectionLimits::default();
        assert!(limits.total < descriptors() && limits.per_address < limits.total, "{limits:?}");
    }
}
