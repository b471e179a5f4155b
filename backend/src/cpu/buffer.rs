//! Pools of buffers that passes reuse: a step allocates no memory once buffers of its sizes exist.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::aligned::{aligned, aligned_mut, capacity_for};
use crate::memory::{self, Cache};

/// Default limit of retained free bytes; see [`BufferUsage::limit_free`].
const MAX_FREE_BYTES: usize = 1 << 30;
/// Passes after which a buffer that none of them used is released.
const MAX_IDLE_PASSES: u64 = 4;

/// Bytes in use and free in the pools of a processor, over all element types.
#[derive(Debug)]
pub(super) struct BufferUsage {
    in_use: AtomicUsize,
    /// Maximum number of bytes in use since the last reset.
    peak: AtomicUsize,
    free: AtomicUsize,
    max_free: AtomicUsize,
    /// Number of the current pass.
    pass: AtomicU64,
}

impl Default for BufferUsage {
    fn default() -> Self {
        let zero = || AtomicUsize::new(0);
        let max_free = AtomicUsize::new(MAX_FREE_BYTES);
        Self { in_use: zero(), peak: zero(), free: zero(), max_free, pass: AtomicU64::new(0) }
    }
}

impl BufferUsage {
    /// Maximum number of bytes in use at once since [`BufferUsage::reset_peak`].
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Sets the peak to what is in use now.
    pub(super) fn reset_peak(&self) {
        self.peak.store(self.in_use.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Bytes in use now.
    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Bytes of free buffers.
    pub(super) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// Sets the most bytes of free buffers that are retained.
    pub(super) fn limit_free(&self, bytes: usize) {
        self.max_free.store(bytes, Ordering::Relaxed);
    }

    fn acquire(&self, bytes: usize) {
        let in_use = self.in_use.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(in_use, Ordering::Relaxed);
    }

    fn release(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn can_retain(&self, bytes: usize) -> bool {
        self.free().saturating_add(bytes) <= self.max_free.load(Ordering::Relaxed)
    }

    fn pass(&self) -> u64 {
        self.pass.load(Ordering::Relaxed)
    }

    /// Begins another pass: [`BufferPool::evict_idle`] counts them.
    pub(super) fn next_pass(&self) {
        self.pass.fetch_add(1, Ordering::Relaxed);
    }
}

/// A free buffer, and the last pass that used it.
struct FreeBuffer<T> {
    data: Vec<T>,
    pass: u64,
}

/// Free buffers by length; those of one length in the order of their last use.
struct FreeList<T> {
    by_len: BTreeMap<usize, Vec<FreeBuffer<T>>>,
}

impl<T> FreeList<T> {
    /// Removes the shortest buffer of a length between `len` and `max_len`.
    fn pop(&mut self, len: usize, max_len: usize) -> Option<Vec<T>> {
        let (key, buffers) = self.by_len.range_mut(len..=max_len).next()?;
        let (key, found) = (*key, buffers.pop());
        if buffers.is_empty() {
            self.by_len.remove(&key);
        }
        found.map(|free| free.data)
    }

    fn push(&mut self, data: Vec<T>, pass: u64) {
        self.by_len.entry(data.len()).or_default().push(FreeBuffer { data, pass });
    }

    /// Removes the least recently used buffer, if it was last used before pass `before`.
    fn pop_oldest(&mut self, before: u64) -> Option<Vec<T>> {
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

/// State that a pool and its buffers share.
struct PoolState<T> {
    free: Mutex<FreeList<T>>,
    usage: Arc<BufferUsage>,
}

impl<T> PoolState<T> {
    fn lock(&self) -> MutexGuard<'_, FreeList<T>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retains a buffer; where that would exceed the limit, buffers that this pass did not use are evicted, and where
    /// there are none, the buffer is freed. Buffers of this pass are never evicted: the next pass needs as much, and
    /// would allocate it each time.
    fn push(&self, data: Vec<T>) {
        let (bytes, pass) = (size_of_val(&data[..]), self.usage.pass());
        while !self.usage.can_retain(bytes) {
            if !self.evict_oldest(pass) {
                return;
            }
        }
        self.usage.free.fetch_add(bytes, Ordering::Relaxed);
        self.lock().push(data, pass);
    }

    fn pop(&self, len: usize, max_len: usize) -> Option<Vec<T>> {
        let found = self.lock().pop(len, max_len)?;
        self.usage.free.fetch_sub(size_of_val(&found[..]), Ordering::Relaxed);
        Some(found)
    }

    /// Frees the least recently used buffer from before pass `before`, outside the lock. Whether there was one.
    fn evict_oldest(&self, before: u64) -> bool {
        let oldest = self.lock().pop_oldest(before);
        let bytes = oldest.as_ref().map_or(0, |data| size_of_val(&data[..]));
        self.usage.free.fetch_sub(bytes, Ordering::Relaxed);
        oldest.is_some()
    }

    fn evict_before(&self, pass: u64) {
        while self.evict_oldest(pass) {}
    }
}

impl<T: Send> Cache for PoolState<T> {
    fn clear(&self) {
        self.evict_before(u64::MAX);
    }
}

/// A pool of buffers of one element type.
pub(super) struct BufferPool<T> {
    state: Arc<PoolState<T>>,
}

impl<T: Copy + Default + Send + 'static> BufferPool<T> {
    /// An empty pool that counts in `usage`. [`memory::release_free`] empties it with all others.
    pub(super) fn new(usage: Arc<BufferUsage>) -> Self {
        let free = Mutex::new(FreeList { by_len: BTreeMap::new() });
        let state = Arc::new(PoolState { free, usage });
        let cache: Arc<dyn Cache> = state.clone();
        memory::register(&cache);
        Self { state }
    }

    /// A buffer of `len` elements with anything in them.
    pub(super) fn alloc(&self, len: usize) -> Buffer<T> {
        // Buffers that are much too large stay for requests of their size.
        let capacity = capacity_for::<T>(len);
        let data = if len == 0 { None } else { self.state.pop(capacity, capacity + len / 8 + 1024) };
        self.state.usage.acquire(len * size_of::<T>());
        Buffer { data: data.unwrap_or_else(|| vec![T::default(); capacity]), len, pool: Arc::clone(&self.state) }
    }

    /// A buffer of zeros.
    pub(super) fn zeros(&self, len: usize) -> Buffer<T> {
        let mut buffer = self.alloc(len);
        buffer.fill(T::default());
        buffer
    }

    /// Frees all free buffers.
    pub(super) fn trim(&self) {
        self.state.evict_before(u64::MAX);
    }

    /// Frees the buffers that the last few passes did not use.
    pub(super) fn evict_idle(&self) {
        self.state.evict_before(self.state.usage.pass().saturating_sub(MAX_IDLE_PASSES));
    }
}

/// A buffer in use, aligned to a cache line. It returns to its pool when it is dropped.
pub struct Buffer<T> {
    /// The capacity for `len` elements or somewhat more.
    data: Vec<T>,
    len: usize,
    pool: Arc<PoolState<T>>,
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        aligned(&self.data, self.len)
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        aligned_mut(&mut self.data, self.len)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.pool.usage.release(self.len * size_of::<T>());
        if !self.data.is_empty() {
            self.pool.push(std::mem::take(&mut self.data));
        }
    }
}

/// Locked for writing by the test that empties the pools of the whole process, for reading by tests that count bytes.
#[cfg(test)]
pub(super) static POOLS: std::sync::RwLock<()> = std::sync::RwLock::new(());

#[cfg(test)]
#[path = "tests/buffer.rs"]
mod tests;
