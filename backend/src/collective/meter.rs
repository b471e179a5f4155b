//! Cost of collectives for a rank: time, and bytes that it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::call::{Call, CollectiveError};
use super::payload::Payload;
use super::rank::Collective;
use super::volume::CollectiveKind;

/// Totals since the ranks were connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveUse {
    /// Time within collectives, waits for other ranks included.
    pub nanoseconds: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Bytes sent by [`CollectiveKind`].
    by_kind: [u64; CollectiveKind::ALL.len()],
}

impl CollectiveUse {
    /// Returns the bytes sent to other ranks in collectives of a kind.
    pub fn sent(&self, kind: CollectiveKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// Returns the difference from an earlier reading, `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            nanoseconds: self.nanoseconds.saturating_sub(before.nanoseconds),
            bytes_sent: self.bytes_sent.saturating_sub(before.bytes_sent),
            by_kind: std::array::from_fn(|at| self.by_kind[at].saturating_sub(before.by_kind[at])),
        }
    }
}

/// Counts what goes through a transport.
pub(super) struct Metered {
    inner: Arc<dyn Collective>,
    nanoseconds: AtomicU64,
    bytes_sent: AtomicU64,
    by_kind: [AtomicU64; CollectiveKind::ALL.len()],
}

impl Metered {
    pub(super) fn new(inner: Arc<dyn Collective>) -> Self {
        Self { inner, nanoseconds: AtomicU64::new(0), bytes_sent: AtomicU64::new(0), by_kind: Default::default() }
    }

    pub(super) fn read(&self) -> CollectiveUse {
        // Relaxed: the counters are independent sums.
        CollectiveUse {
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            by_kind: self.by_kind.each_ref().map(|bytes| bytes.load(Ordering::Relaxed)),
        }
    }
}

impl Metered {
    /// Counts bytes for other ranks that did not go through this transport.
    pub(super) fn count(&self, kind: CollectiveKind, bytes: usize) {
        self.by_kind[kind as usize].fetch_add(bytes as u64, Ordering::Relaxed);
        self.bytes_sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Collective for Metered {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn world(&self) -> usize {
        self.inner.world()
    }

    fn exchange_among(
        &self,
        members: &[usize],
        call: Call,
        parts: Vec<Payload>,
    ) -> Result<Vec<Payload>, CollectiveError> {
        let own = self.rank();
        let for_others = members.iter().zip(&parts).filter(|(rank, _)| **rank != own);
        let bytes: usize = for_others.map(|(_, part)| part.bytes()).sum();
        if let Some(kind) = CollectiveKind::of(call.operation) {
            self.by_kind[kind as usize].fetch_add(bytes as u64, Ordering::Relaxed);
        }
        let began = Instant::now();
        let received = self.inner.exchange_among(members, call, parts);
        self.nanoseconds.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.bytes_sent.fetch_add(bytes as u64, Ordering::Relaxed);
        received
    }

    fn fail(&self, failure: CollectiveError) {
        self.inner.fail(failure);
    }

    fn fault(&self) -> Option<CollectiveError> {
        self.inner.fault()
    }
}
