//! Time and work of GEMMs, for benchmarks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counts time and work of the GEMMs of all threads, those of attention excepted.
#[derive(Default)]
pub(super) struct GemmMeter {
    nanoseconds: AtomicU64,
    flops: AtomicU64,
    weight_bytes: AtomicU64,
}

/// Totals of GEMMs since the start, or between two readings, without those of attention. The time includes activations
/// that are computed strip by strip with gate and up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GemmStats {
    /// Time of all threads together.
    pub thread_seconds: f64,
    /// Floating-point operations: two per multiply-add.
    pub flops: u64,
    /// Bytes of weights that were read, once for each block of rows.
    pub weight_bytes: u64,
}

impl GemmStats {
    /// Returns the difference from an `earlier` reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            thread_seconds: self.thread_seconds - earlier.thread_seconds,
            flops: self.flops - earlier.flops,
            weight_bytes: self.weight_bytes - earlier.weight_bytes,
        }
    }
}

impl GemmMeter {
    /// Counts a GEMM that ran on the calling thread from `start` to now: `terms` multiply-adds over `weight_bytes` bytes of
    /// weights.
    pub(super) fn count(&self, start: Instant, terms: usize, weight_bytes: usize) {
        // Relaxed: the counters are independent sums.
        self.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.flops.fetch_add(2 * terms as u64, Ordering::Relaxed);
        self.weight_bytes.fetch_add(weight_bytes as u64, Ordering::Relaxed);
    }

    /// Everything since the start.
    pub(super) fn read(&self) -> GemmStats {
        GemmStats {
            thread_seconds: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            flops: self.flops.load(Ordering::Relaxed),
            weight_bytes: self.weight_bytes.load(Ordering::Relaxed),
        }
    }
}
