//! What collectives cost a rank: time, and bytes that it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::call::{Call, CollectiveError};
use super::payload::Payload;
use super::rank::Collective;

/// Totals since the ranks were connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveUse {
    /// Time within collectives, waits for other ranks included.
    pub nanoseconds: u64,
    /// Bytes for other ranks.
    pub bytes_sent: u64,
}

/// Counts what goes through a transport.
pub(super) struct Metered {
    inner: Arc<dyn Collective>,
    nanoseconds: AtomicU64,
    bytes_sent: AtomicU64,
}

impl Metered {
    pub(super) fn new(inner: Arc<dyn Collective>) -> Self {
        Self { inner, nanoseconds: AtomicU64::new(0), bytes_sent: AtomicU64::new(0) }
    }

    pub(super) fn read(&self) -> CollectiveUse {
        // Relaxed: the counters are independent sums.
        CollectiveUse {
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
        }
    }
}

impl Collective for Metered {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn world(&self) -> usize {
        self.inner.world()
    }

    fn exchange(&self, call: Call, parts: Vec<Payload>) -> Result<Vec<Payload>, CollectiveError> {
        let own = self.rank();
        let for_others = parts.iter().enumerate().filter(|(rank, _)| *rank != own);
        let bytes: usize = for_others.map(|(_, part)| part.bytes()).sum();
        let began = Instant::now();
        let received = self.inner.exchange(call, parts);
        self.nanoseconds.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.bytes_sent.fetch_add(bytes as u64, Ordering::Relaxed);
        received
    }
}
