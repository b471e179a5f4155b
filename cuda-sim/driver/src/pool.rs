//! A device's memory pool: how much of the device it holds, and which other devices may touch its memory.

use std::collections::{BTreeMap, BTreeSet};

/// The pool that `cuMemAllocAsync` takes memory from.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Devices beside the pool's own that may read and write its memory.
    pub(crate) peers: BTreeSet<usize>,
    /// Bytes that the pool keeps when the host waits for a stream, although nothing uses them.
    pub(crate) release_threshold: u64,
    /// Lengths of its allocations by address.
    allocations: BTreeMap<u64, u64>,
    /// Bytes of its allocations.
    used: u64,
    /// Bytes of the device that it holds.
    reserved: u64,
}

impl Pool {
    pub(crate) fn add(&mut self, address: u64, length: u64) {
        self.allocations.insert(address, length);
        self.used += length;
        self.reserved = self.reserved.max(self.used);
    }

    /// Notes that an allocation is free, if it was the pool's: the pool still holds its bytes.
    pub(crate) fn remove(&mut self, address: u64) {
        self.used -= self.allocations.remove(&address).unwrap_or(0);
    }

    /// Whether an address is within one of its allocations.
    pub(crate) fn has_part(&self, address: u64) -> bool {
        let before = self.allocations.range(..=address).next_back();
        before.is_some_and(|(start, length)| address - start < *length)
    }

    /// Returns to the system what it holds above `keep` bytes and does not use.
    pub(crate) fn trim(&mut self, keep: u64) {
        self.reserved = self.reserved.min(self.used.max(keep));
    }

    /// Bytes that nothing uses.
    pub(crate) fn unused(&self) -> u64 {
        self.reserved - self.used
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn a_pool_keeps_what_its_threshold_allows() {
        let mut pool = Pool::default();
        pool.add(512, 100);
        pool.add(1024, 50);
        assert!(pool.has_part(512) && pool.has_part(611) && !pool.has_part(612));
        pool.remove(512);
        pool.remove(7);
        assert_eq!((pool.used(), pool.reserved(), pool.unused()), (50, 150, 100));
        assert!(pool.has_part(1024) && !pool.has_part(512));
        pool.add(2048, 60);
        assert_eq!(pool.reserved(), 150, "memory that it holds is used again");
        pool.remove(2048);
        pool.trim(120);
        assert_eq!(pool.reserved(), 120);
        pool.trim(0);
        assert_eq!((pool.used(), pool.reserved()), (50, 50));
    }
}
