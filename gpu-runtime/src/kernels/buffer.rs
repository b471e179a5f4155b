//! Memory that passes use again and again: a step asks the system for none once its sizes have been seen.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::{self, Spare};

/// Bytes that may lie unused unless [`Usage::limit_unused`] says otherwise.
const MOST_UNUSED: usize = 1 << 30;
/// Passes after which a buffer that none of them took goes.
const KEPT_PASSES: u64 = 4;

/// What is on loan and what lies unused, over all types of elements.
#[derive(Debug)]
pub struct Usage {
    bytes: AtomicUsize,
    peak: AtomicUsize,
    unused: AtomicUsize,
    most_unused: AtomicUsize,
    /// Counts passes.
    pass: AtomicU64,
}

impl Default for Usage {
    fn default() -> Self {
        let zero = || AtomicUsize::new(0);
        let most_unused = AtomicUsize::new(MOST_UNUSED);
        Self { bytes: zero(), peak: zero(), unused: zero(), most_unused, pass: AtomicU64::new(0) }
    }
}

impl Usage {
    /// Most bytes that were on loan at once since [`Usage::reset_peak`].
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Begins to look for the peak anew.
    pub fn reset_peak(&self) {
        self.peak.store(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Bytes that are kept for later loans.
    pub fn unused(&self) -> usize {
        self.unused.load(Ordering::Relaxed)
    }

    /// Keeps at most so many bytes for later loans.
    pub fn limit_unused(&self, bytes: usize) {
        self.most_unused.store(bytes, Ordering::Relaxed);
    }

    fn lend(&self, bytes: usize) {
        let lent = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(lent, Ordering::Relaxed);
    }

    fn take_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.unused().saturating_add(bytes) <= self.most_unused.load(Ordering::Relaxed)
    }

    fn pass(&self) -> u64 {
        self.pass.load(Ordering::Relaxed)
    }

    /// Begins another pass; the buffers of the processor let go of what the last ones did not take.
    pub(super) fn next_pass(&self) {
        self.pass.fetch_add(1, Ordering::Relaxed);
    }
}

/// Buffers that are not in use.
struct Shelf<T> {
    unused: Mutex<Unused<T>>,
    usage: Arc<Usage>,
}

/// A buffer that is not in use, and the pass in which it was.
struct Idle<T> {
    data: Vec<T>,
    pass: u64,
}

/// By length; of one length, that which was in use last is the last one.
struct Unused<T> {
    by_len: BTreeMap<usize, Vec<Idle<T>>>,
}

impl<T> Unused<T> {
    /// The shortest buffer of a length between `len` and `most`.
    fn take(&mut self, len: usize, most: usize) -> Option<Vec<T>> {
        let (key, buffers) = self.by_len.range_mut(len..=most).next()?;
        let (key, found) = (*key, buffers.pop());
        if buffers.is_empty() {
            self.by_len.remove(&key);
        }
        found.map(|idle| idle.data)
    }

    fn put(&mut self, data: Vec<T>, pass: u64) {
        self.by_len.entry(data.len()).or_default().push(Idle { data, pass });
    }

    /// Takes the buffer that was not in use for the longest time, if that was before pass `before`.
    fn take_oldest(&mut self, before: u64) -> Option<Vec<T>> {
        let oldest = self.by_len.iter().filter_map(|(len, buffers)| Some((buffers.first()?.pass, *len)));
        let (pass, len) = oldest.min()?;
        let buffers = self.by_len.get_mut(&len).filter(|_| pass < before)?;
        let data = buffers.remove(0).data;
        if buffers.is_empty() {
            self.by_len.remove(&len);
        }
        Some(data)
    }
}

impl<T> Shelf<T> {
    fn lock(&self) -> MutexGuard<'_, Unused<T>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a buffer for later, if need be in place of such as were not in use in this pass. What this pass has left
    /// stays: the next one will want as much, and more than the limit would be asked of the system each time.
    fn put(&self, data: Vec<T>) {
        let (bytes, pass) = (size_of_val(&data[..]), self.usage.pass());
        while !self.usage.has_room_for(bytes) {
            if !self.drop_oldest(pass) {
                return;
            }
        }
        self.usage.unused.fetch_add(bytes, Ordering::Relaxed);
        self.lock().put(data, pass);
    }

    fn take(&self, len: usize, most: usize) -> Option<Vec<T>> {
        let found = self.lock().take(len, most)?;
        self.usage.unused.fetch_sub(size_of_val(&found[..]), Ordering::Relaxed);
        Some(found)
    }

    /// Gives the oldest buffer from before pass `before` back to the system. The lock is not held while that takes.
    fn drop_oldest(&self, before: u64) -> bool {
        let oldest = self.lock().take_oldest(before);
        let bytes = oldest.as_ref().map_or(0, |data| size_of_val(&data[..]));
        self.usage.unused.fetch_sub(bytes, Ordering::Relaxed);
        oldest.is_some()
    }

    fn trim(&self, before: u64) {
        while self.drop_oldest(before) {}
    }
}

impl<T: Send> Spare for Shelf<T> {
    fn give_back(&self) {
        self.trim(u64::MAX);
    }
}

/// The buffers of a processor.
pub struct Buffers<T> {
    shelf: Arc<Shelf<T>>,
}

impl<T: Copy + Default + Send + 'static> Buffers<T> {
    /// Buffers whose loans count in `usage`. They are given back with all other memory by [`memory::give_back`].
    pub fn new(usage: Arc<Usage>) -> Self {
        let unused = Mutex::new(Unused { by_len: BTreeMap::new() });
        let shelf = Arc::new(Shelf { unused, usage });
        let spare: Arc<dyn Spare> = shelf.clone();
        memory::register(&spare);
        Self { shelf }
    }

    /// A buffer of `len` elements that holds whatever its last user left.
    pub fn take(&self, len: usize) -> Buffer<T> {
        // One that is much too large is left for those who need it.
        let data = if len == 0 { None } else { self.shelf.take(len, len + len / 8 + 1024) };
        self.shelf.usage.lend(len * size_of::<T>());
        Buffer { data: data.unwrap_or_else(|| vec![T::default(); len]), len, shelf: Arc::clone(&self.shelf) }
    }

    /// A buffer of zeros.
    pub fn zeros(&self, len: usize) -> Buffer<T> {
        let mut buffer = self.take(len);
        buffer.fill(T::default());
        buffer
    }

    /// A copy.
    pub fn copy(&self, of: &[T]) -> Buffer<T> {
        let mut buffer = self.take(of.len());
        buffer.copy_from_slice(of);
        buffer
    }

    /// Gives unused memory back to the system.
    pub fn trim(&self) {
        self.shelf.trim(u64::MAX);
    }

    /// Gives back what the last few passes did not take.
    pub(super) fn age(&self) {
        self.shelf.trim(self.shelf.usage.pass().saturating_sub(KEPT_PASSES));
    }
}

/// Elements on loan; they go back when it is dropped.
pub struct Buffer<T> {
    data: Vec<T>,
    len: usize,
    shelf: Arc<Shelf<T>>,
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[..self.len]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[..self.len]
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.shelf.usage.take_back(self.len * size_of::<T>());
        if !self.data.is_empty() {
            self.shelf.put(std::mem::take(&mut self.data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_zeros_are_zeros() {
        let usage = Arc::new(Usage::default());
        let buffers = Buffers::<f32>::new(Arc::clone(&usage));
        let mut first = buffers.take(5000);
        first.fill(7.0);
        let address = first.as_ptr();
        drop(first);
        let second = buffers.take(4800);
        assert_eq!((second.as_ptr(), second.len(), second[0]), (address, 4800, 7.0));
        let other = buffers.take(4800);
        assert_ne!(other.as_ptr(), address);
        assert_eq!((usage.peak(), usage.bytes.load(Ordering::Relaxed)), (4 * 9600, 4 * 9600));
        drop((second, other));
        usage.reset_peak();
        assert_eq!(usage.peak(), 0);
        assert!(buffers.zeros(5000).iter().all(|x| *x == 0.0));
        assert_eq!(*buffers.copy(&[1.0, 2.0]), [1.0, 2.0]);
        // Far too large for ten elements.
        assert_eq!(buffers.take(10).data.len(), 10);
        buffers.trim();
        assert!(buffers.shelf.lock().by_len.is_empty());
    }

    fn total(buffers: &Buffers<u8>) -> usize {
        let total = buffers.shelf.lock().by_len.values().flatten().map(|idle| idle.data.len()).sum();
        assert_eq!(total, buffers.shelf.usage.unused());
        total
    }

    #[test]
    fn what_lies_unused_is_bounded() {
        let usage = Arc::new(Usage::default());
        usage.limit_unused(10_000);
        let (buffers, others) = (Buffers::<u8>::new(Arc::clone(&usage)), Buffers::<u32>::new(Arc::clone(&usage)));
        // More than the limit in a pass: as much as may be stays for the next one.
        for _ in 0..3 {
            drop((0..4).map(|_| buffers.take(4000)).collect::<Vec<_>>());
            assert_eq!(total(&buffers), 8000);
            usage.next_pass();
            buffers.age();
        }
        // One limit for all types.
        drop(others.take(1000));
        assert_eq!(usage.unused(), 8000);
        drop(others.take(500));
        assert_eq!(usage.unused(), 10_000);
    }

    #[test]
    fn what_passes_do_not_take_goes() {
        let usage = Arc::new(Usage::default());
        let buffers = Buffers::<u8>::new(Arc::clone(&usage));
        drop((buffers.take(5000), buffers.take(5000), buffers.take(70_000)));
        for _ in 0..KEPT_PASSES {
            usage.next_pass();
            buffers.age();
            drop(buffers.take(5000));
            assert_eq!(total(&buffers), 80_000);
        }
        usage.next_pass();
        buffers.age();
        assert_eq!(total(&buffers), 5000, "that which was taken again and again");
        // In place of the old ones where there is no room.
        usage.limit_unused(20_000);
        drop(buffers.take(18_000));
        assert_eq!(total(&buffers), 18_000);
    }
}
