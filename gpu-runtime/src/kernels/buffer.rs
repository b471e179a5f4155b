//! Memory that passes use again and again: a step asks the system for none once its sizes have been seen.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Elements that may lie unused on a shelf.
const MOST_UNUSED: usize = 1 << 27;

/// What is on loan, over all types of elements.
#[derive(Debug, Default)]
pub struct Usage {
    bytes: AtomicUsize,
    peak: AtomicUsize,
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

    fn lend(&self, bytes: usize) {
        let lent = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(lent, Ordering::Relaxed);
    }

    fn take_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Buffers that are not in use.
struct Shelf<T> {
    unused: Mutex<Unused<T>>,
    usage: Arc<Usage>,
}

struct Unused<T> {
    by_len: BTreeMap<usize, Vec<Vec<T>>>,
    elements: usize,
}

impl<T> Unused<T> {
    /// The shortest buffer of a length between `len` and `most`.
    fn take(&mut self, len: usize, most: usize) -> Option<Vec<T>> {
        let (key, buffers) = self.by_len.range_mut(len..=most).next()?;
        let (key, found) = (*key, buffers.pop());
        if buffers.is_empty() {
            self.by_len.remove(&key);
        }
        self.elements -= found.as_ref().map_or(0, Vec::len);
        found
    }

    fn put(&mut self, buffer: Vec<T>) {
        if self.elements + buffer.len() > MOST_UNUSED {
            self.clear();
        }
        self.elements += buffer.len();
        self.by_len.entry(buffer.len()).or_default().push(buffer);
    }

    fn clear(&mut self) {
        self.by_len.clear();
        self.elements = 0;
    }
}

impl<T> Shelf<T> {
    fn lock(&self) -> MutexGuard<'_, Unused<T>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The buffers of a processor.
pub struct Buffers<T> {
    shelf: Arc<Shelf<T>>,
}

impl<T: Copy + Default> Buffers<T> {
    /// Buffers whose loans count in `usage`.
    pub fn new(usage: Arc<Usage>) -> Self {
        let unused = Mutex::new(Unused { by_len: BTreeMap::new(), elements: 0 });
        Self { shelf: Arc::new(Shelf { unused, usage }) }
    }

    /// A buffer of `len` elements that holds whatever its last user left.
    pub fn take(&self, len: usize) -> Buffer<T> {
        // One that is much too large is left for those who need it.
        let data = if len == 0 { None } else { self.shelf.lock().take(len, len + len / 8 + 1024) };
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
        self.shelf.lock().clear();
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
            self.shelf.lock().put(std::mem::take(&mut self.data));
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

    #[test]
    fn what_lies_unused_is_bounded() {
        let buffers = Buffers::<u8>::new(Arc::default());
        let held: Vec<_> = (0..4).map(|_| buffers.take(MOST_UNUSED / 2)).collect();
        drop(held);
        let unused = buffers.shelf.lock();
        let total: usize = unused.by_len.values().flatten().map(Vec::len).sum();
        assert!(total == unused.elements && total <= MOST_UNUSED && total > 0);
    }
}
