//! Metrics of connections to the store and of the process's writer.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{FloatGauge, Labels, signed};
use crate::Error;

/// Upper bounds in seconds, from a commit to memory to the longest time that a call waits.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0, 30.0];
/// Upper bounds of the number of writes in a transaction.
const WRITES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// Values of the label for the reason of a failed transaction.
const REASONS: [&str; 3] = ["unavailable", "no_space", "error"];

/// Metrics of the store as seen by this process.
#[derive(Clone, Debug)]
pub(crate) struct StoreMetrics {
    reader_wait: Histogram,
    readers_used: Gauge,
    readers_limit: Gauge,
    /// Number of writes that were sent but are still unsettled.
    pub(crate) queued: Gauge,
    wait: Histogram,
    transaction: Histogram,
    commit: Histogram,
    batch: Histogram,
    failures: Family<Labels, Counter>,
    /// Number of records whose content was given up.
    pub(crate) given_up: Counter,
    heartbeat_age: FloatGauge,
    shortest_lease: FloatGauge,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let failures = Family::<Labels, Counter>::default();
        for reason in REASONS {
            drop(failures.get_or_create(&for_reason(reason)));
        }
        let shortest_lease = FloatGauge::default();
        shortest_lease.set(f64::NAN);
        Self {
            reader_wait: Histogram::new(SECONDS),
            readers_used: Gauge::default(),
            readers_limit: Gauge::default(),
            queued: Gauge::default(),
            wait: Histogram::new(SECONDS),
            transaction: Histogram::new(SECONDS),
            commit: Histogram::new(SECONDS),
            batch: Histogram::new(WRITES),
            failures,
            given_up: Counter::default(),
            heartbeat_age: FloatGauge::default(),
            shortest_lease,
        }
    }
}

fn for_reason(reason: &'static str) -> Labels {
    Labels { fixed: [Some(("reason", reason)), None], tenant: None }
}

impl StoreMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("store_reader_wait_seconds", "Time to get a connection that reads", self.reader_wait.clone());
        registry.register("store_readers_used", "Connections that are reading", self.readers_used.clone());
        registry.register("store_readers_limit", "Connections that may read", self.readers_limit.clone());
        registry.register("writer_queued_writes", "Writes that are not committed yet", self.queued.clone());
        let wait = self.wait.clone();
        registry.register("writer_wait_seconds", "Time from sending a write to the start of its transaction", wait);
        let transaction = self.transaction.clone();
        registry.register("store_transaction_seconds", "Time of a transaction that was committed", transaction);
        registry.register("store_commit_seconds", "Time of its commit only", self.commit.clone());
        registry.register("store_transaction_writes", "Writes of a committed transaction", self.batch.clone());
        registry.register(
            "store_failures",
            "Transactions that failed; their records are retried",
            self.failures.clone(),
        );
        let given_up = self.given_up.clone();
        registry.register("store_refused_records", "Records that the database refused at every attempt", given_up);
        let age = self.heartbeat_age.clone();
        registry.register("heartbeat_age_seconds", "Time since the worker's last recorded heartbeat", age);
        let lease = self.shortest_lease.clone();
        registry.register("shortest_lease_seconds", "Time until the first lease of a worker expires", lease);
    }

    /// Records the time until a reading connection was given out or refused.
    pub(crate) fn waited_for_reader(&self, waited: Duration) {
        self.reader_wait.observe(waited.as_secs_f64());
    }

    /// Sets the number of connections that read at present, and their limit.
    pub(crate) fn set_readers(&self, used: usize, limit: usize) {
        self.readers_used.set(signed(used as u64));
        self.readers_limit.set(signed(limit as u64));
    }

    /// Records the time from sending a write to the start of its transaction, once committed.
    pub(crate) fn waited(&self, waited: Duration) {
        self.wait.observe(waited.as_secs_f64());
    }

    /// Records the time of a commit.
    pub(crate) fn committed(&self, took: Duration) {
        self.commit.observe(took.as_secs_f64());
    }

    /// Records the time and the number of writes of a committed transaction.
    pub(crate) fn transacted(&self, took: Duration, writes: usize) {
        self.transaction.observe(took.as_secs_f64());
        self.batch.observe(writes as f64);
    }

    /// Counts a failed transaction.
    pub(crate) fn failed(&self, error: &Error) {
        let reason = match error {
            Error::Unavailable(_) | Error::Tls(_) | Error::Conflict(_) => "unavailable",
            Error::NoSpace(_) => "no_space",
            _ => "error",
        };
        self.failures.get_or_create(&for_reason(reason)).inc();
    }

    /// Sets the age of this worker's last heartbeat; 0 without a worker.
    pub(crate) fn set_heartbeat_age(&self, age: Duration) {
        self.heartbeat_age.set(age.as_secs_f64());
    }

    /// Sets the time in ms until the first lease expires; without a lease the value is not a number.
    pub(crate) fn set_shortest_lease(&self, millis: Option<i64>) {
        self.shortest_lease.set(millis.map_or(f64::NAN, |millis| millis as f64 / 1_000.0));
    }
}
