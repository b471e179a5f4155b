//! What products took: for benchmarks, beside the time of everything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counts what all threads spend in matrix products (attention's small ones apart).
#[derive(Default)]
pub struct Meter {
    nanoseconds: AtomicU64,
    flops: AtomicU64,
    weight_bytes: AtomicU64,
}

/// What a [`Meter`] has counted so far, or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Products {
    /// Time of all threads together.
    pub thread_seconds: f64,
    /// Floating-point operations: two per multiply-add.
    pub flops: u64,
    /// Bytes of weights that were read, once for each block of rows.
    pub weight_bytes: u64,
}

impl Products {
    /// What was counted after an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            thread_seconds: self.thread_seconds - earlier.thread_seconds,
            flops: self.flops - earlier.flops,
            weight_bytes: self.weight_bytes - earlier.weight_bytes,
        }
    }
}

impl Meter {
    /// Counts a product from `start` to now on the calling thread: `terms` multiply-adds with `weight_bytes` of weights.
    pub(super) fn count(&self, start: Instant, terms: usize, weight_bytes: usize) {
        // Sums alone are read: no order among them matters.
        self.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.flops.fetch_add(2 * terms as u64, Ordering::Relaxed);
        self.weight_bytes.fetch_add(weight_bytes as u64, Ordering::Relaxed);
    }

    /// All since the start.
    pub fn read(&self) -> Products {
        Products {
            thread_seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            flops: self.flops.load(Ordering::Relaxed),
            weight_bytes: self.weight_bytes.load(Ordering::Relaxed),
        }
    }
}
