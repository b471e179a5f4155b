//! State of this process about heartbeats: its worker's registration, the last heartbeat, the store's outages.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::Timestamp;

/// What this process knows about heartbeats.
pub(crate) struct Heartbeats {
    /// Number of starts of this process's worker; 0 until it is registered.
    incarnation: AtomicI64,
    /// Held while the worker sends a heartbeat or registers.
    sending: tokio::sync::Mutex<()>,
    /// Time of the last heartbeat in ms since the epoch; 0 before the first.
    last: AtomicI64,
    /// Time at which the store became reachable, in ms since the epoch.
    reachable_since: AtomicI64,
}

impl Heartbeats {
    /// Creates the state of a process that has just opened the store.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            incarnation: AtomicI64::new(0),
            sending: tokio::sync::Mutex::default(),
            last: AtomicI64::new(0),
            reachable_since: AtomicI64::new(now.as_millis()),
        }
    }

    /// Returns the number of the worker's registration; 0 before the first.
    pub(crate) fn incarnation(&self) -> i64 {
        self.incarnation.load(Ordering::Acquire)
    }

    pub(super) fn registered(&self, incarnation: i64) {
        self.incarnation.store(incarnation, Ordering::Release);
    }

    /// Waits until no other task sends a heartbeat. None does while the result is held.
    pub(super) async fn exclusive(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.sending.lock().await
    }

    /// Records that the worker's leases have just been prolonged.
    pub(super) fn sent(&self, now: Timestamp) {
        self.last.store(now.as_millis(), Ordering::Relaxed);
    }

    /// Returns the time since the worker's leases were last prolonged; zero before the first time.
    pub(crate) fn age(&self, now: Timestamp) -> Duration {
        match self.last.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            last => Timestamp(last).until(now),
        }
    }

    /// Records that the store could not be reached before `now`.
    pub(crate) fn store_reachable_since(&self, now: Timestamp) {
        self.reachable_since.store(now.as_millis(), Ordering::Relaxed);
    }

    /// Returns the time for which the store has been reachable.
    pub(super) fn store_reachable_for(&self, now: Timestamp) -> Duration {
        Timestamp(self.reachable_since.load(Ordering::Relaxed)).until(now)
    }
}
