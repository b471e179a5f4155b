//! Allocation, copies and reuse of device memory.
#![allow(unsafe_code, reason = "elements are copied to the device as the bytes that they are")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use super::element::Element;
use super::error::{CudaError, Extents, Result};
use super::fence::Fence;
use super::queue::Queue;
use super::reads::ElementSink;
use super::work::Work;
use crate::backend::BufferBytes;

/// Memory of one device for one stream. Released slices are reused by later ones of a similar size, without asking the driver: the
/// stream orders their uses.
pub struct Arena {
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses of free memory by capacity. The lowest is reused first, so that a pass that repeats has its slices where it had them.
    free: BTreeMap<usize, BTreeSet<u64>>,
    bytes: BufferBytes,
    /// Maximum number of free bytes that are retained; with 0 every slice has memory of its own, of exactly its size.
    limit: usize,
    /// Bytes of new memory since the last pass ended.
    grown: usize,
}

/// Alignment of all slices, and the smallest capacity that is reused.
const GRANULE: usize = 512;

impl Arena {
    pub(crate) fn new(queue: Arc<Queue>, limit: usize) -> Self {
        Self { queue, state: Mutex::new(State { limit, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the maximum bytes of free memory that are retained for reuse. With 0, every slice has memory of its own:
    /// this is slower, but a checker then finds accesses beyond its end and reads of uninitialised memory.
    pub fn limit_unused(&self, bytes: usize) -> Result {
        self.state().limit = bytes;
        self.release_above(bytes)
    }

    /// Returns all free memory to the driver.
    pub fn trim(&self) -> Result {
        self.release_above(0)
    }

    /// Returns the bytes in use, free and at the peak.
    pub fn bytes(&self) -> BufferBytes {
        self.state().bytes
    }

    /// Sets the peak to the bytes in use now.
    pub fn reset_peak(&self) {
        let mut state = self.state();
        state.bytes.peak = state.bytes.used;
    }

    /// Marks the end of a pass.
    pub(crate) fn end_pass(&self) {
        self.state().grown = 0;
    }

    fn release_above(&self, limit: usize) -> Result {
        while let Some(address) = self.state().evict(limit) {
            self.queue.free(address)?;
        }
        Ok(())
    }

    /// Address and capacity of at least that many bytes.
    fn take(&self, bytes: usize) -> Result<(u64, usize)> {
        let capacity = if self.state().limit == 0 { bytes } else { capacity(bytes) };
        if let Some(address) = self.state().reuse(capacity) {
            return Ok((address, capacity));
        }
        // A pass of other sizes than the last one takes the place of what that left.
        let limit = self.state().limit_beside(capacity);
        self.release_above(limit)?;
        let mut address = self.queue.allocate(capacity)?;
        if address.is_none() {
            // What is free has another size, perhaps.
            self.trim()?;
            self.queue.synchronize()?;
            address = self.queue.allocate(capacity)?;
        }
        let Some(address) = address else {
            let error = CudaError::OutOfMemory { bytes, used: self.bytes().used };
            self.queue.refuse(&error);
            return Err(error);
        };
        self.state().grow(capacity);
        Ok((address, capacity))
    }

    fn give(&self, address: u64, capacity: usize) -> Result {
        let retained = self.state().retain(address, capacity);
        if retained { Ok(()) } else { self.queue.free(address) }
    }
}

impl State {
    fn grow(&mut self, bytes: usize) {
        self.bytes.used += bytes;
        self.bytes.peak = self.bytes.peak.max(self.bytes.used);
    }

    /// Limit of free bytes beside all new memory of a pass, with an allocation of `capacity` bytes.
    fn limit_beside(&mut self, capacity: usize) -> usize {
        self.grown += capacity;
        self.limit.saturating_sub(self.grown)
    }

    fn reuse(&mut self, capacity: usize) -> Option<u64> {
        let address = self.free.get_mut(&capacity)?.pop_first()?;
        self.bytes.unused -= capacity;
        self.grow(capacity);
        Some(address)
    }

    /// Whether the memory is now free for reuse; else the driver has to free it.
    fn retain(&mut self, address: u64, capacity: usize) -> bool {
        self.bytes.used -= capacity;
        if self.bytes.unused + capacity > self.limit {
            return false;
        }
        self.bytes.unused += capacity;
        self.free.entry(capacity).or_default().insert(address);
        true
    }

    /// The largest free memory, if more than `limit` bytes are free.
    fn evict(&mut self, limit: usize) -> Option<u64> {
        if self.bytes.unused <= limit {
            return None;
        }
        let mut entry = self.free.last_entry()?;
        let (capacity, address) = (*entry.key(), entry.get_mut().pop_last());
        if entry.get().is_empty() {
            entry.remove();
        }
        self.bytes.unused -= address.map_or(0, |_| capacity);
        address
    }
}

/// Bytes that are allocated for a number of bytes: at most an eighth more, so that similar sizes share memory.
fn capacity(bytes: usize) -> usize {
    bytes.next_multiple_of(GRANULE.max(bytes.next_power_of_two() / 16))
}

/// Elements on the device. Its memory goes back to the arena when it is dropped.
pub struct Slice<T: Element> {
    arena: Arc<Arena>,
    address: u64,
    capacity: usize,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Slice<T> {
    /// Uninitialised elements, which must be written before they are read.
    pub(crate) fn uninitialised(arena: &Arc<Arena>, len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(CudaError::OutOfMemory { bytes: usize::MAX, used: 0 })?;
        let (address, capacity) = if bytes == 0 { (0, 0) } else { arena.take(bytes)? };
        Ok(Self { arena: arena.clone(), address, capacity, len, element: PhantomData })
    }

    /// The number of elements in the slice.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the slice has zero elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first element; 0 without elements.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The address of element `range.start`, if all of `range` is there.
    pub(crate) fn address_of(&self, range: Range<usize>) -> Result<u64> {
        let extents = Extents("part of a slice");
        extents.check(range.end <= self.len, "its end", range.end, || format!("at most {}", self.len))?;
        extents.check(range.start <= range.end, "its start", range.start, || format!("at most {}", range.end))?;
        Ok(self.address + (range.start * size_of::<T>()) as u64)
    }

    /// Overwrites the elements from `first` on.
    pub fn write(&mut self, first: usize, values: &[T]) -> Result {
        let to = self.address_of(first..first + values.len())?;
        // Tables that grow from pass to pass within their memory remain the same work to graphs.
        let room = if first == 0 && values.len() == self.len { self.capacity } else { size_of_val(values) };
        // SAFETY: elements are numbers, or structs of them without padding.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        if values.is_empty() { Ok(()) } else { self.arena.queue.copy_in(to, bytes, room) }
    }

    /// Returns the elements. Waits for all work on the device.
    pub fn to_host(&self) -> Result<Vec<T>> {
        self.part_to_host(0..self.len)
    }

    /// Copies a range of the elements to the host. Waits for all work on the device.
    pub fn part_to_host(&self, range: Range<usize>) -> Result<Vec<T>> {
        let (from, mut values) = (self.address_of(range.clone())?, vec![T::default(); range.len()]);
        if !values.is_empty() {
            self.arena.queue.copy_out(&mut values, from)?;
        }
        Ok(values)
    }

    /// Calls `each` with the elements, part after part, as they were at a fence, and returns its error if it fails.
    /// Runs concurrently with later work: it neither waits for it nor delays it. The elements must not have been
    /// written since the fence.
    pub fn read(&self, fence: &Fence, each: &mut ElementSink<'_, T>) -> Result<io::Result<()>> {
        if self.is_empty() { Ok(Ok(())) } else { self.arena.queue.read(fence.event(), self.address, self.len, each) }
    }

    /// Returns the elements as they were at a fence; see [`Self::read`].
    pub fn to_host_after(&self, fence: &Fence) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(self.len);
        let mut add = |part: &[T]| {
            values.extend_from_slice(part);
            Ok(())
        };
        // `add` has no error.
        self.read(fence, &mut add)?.unwrap_or_default();
        Ok(values)
    }

    /// Overwrites the elements from `first` on with some of another slice's.
    pub fn copy_from(&mut self, first: usize, other: &Self, range: Range<usize>) -> Result {
        let (from, len) = (other.address_of(range.clone())?, range.len());
        let to = self.address_of(first..first + len)?;
        if len == 0 { Ok(()) } else { self.arena.queue.push(Work::Copy { to, from, bytes: len * size_of::<T>() }) }
    }

    /// Sets all bytes to zero.
    pub fn clear(&mut self) -> Result {
        if self.is_empty() {
            return Ok(());
        }
        self.arena.queue.push(Work::Clear { at: self.address, bytes: self.len * size_of::<T>() })
    }

    /// Returns a copy of a range of elements.
    pub fn copy(&self, range: Range<usize>) -> Result<Self> {
        let mut to = Self::uninitialised(&self.arena, range.len())?;
        to.copy_from(0, self, range)?;
        Ok(to)
    }
}

impl<T: Element> Drop for Slice<T> {
    fn drop(&mut self) {
        if self.capacity == 0 {
            return;
        }
        if let Err(error) = self.arena.give(self.address, self.capacity) {
            // A lost device: whoever uses it next gets the error.
            tracing::debug!(%error, "device memory not released");
        }
    }
}

impl<T: Element> fmt::Debug for Slice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slice").field("len", &self.len).field("bytes", &self.capacity).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{GRANULE, State, capacity};

    #[test]
    fn capacities_waste_an_eighth_at_most() {
        for bytes in (1..100_000).chain([1 << 30, (1 << 30) + 1, 3_000_000_000]) {
            let found = capacity(bytes);
            assert!(found >= bytes && found.is_multiple_of(GRANULE), "{bytes}: {found}");
            assert!(found - bytes < GRANULE.max(bytes / 8 + 1), "{bytes}: {found}");
        }
    }

    #[test]
    fn free_memory_is_reused_up_to_the_limit() {
        let mut state = State { limit: 1000, ..State::default() };
        state.grow(600);
        state.grow(600);
        assert!(state.retain(1, 600) && !state.retain(2, 600));
        assert_eq!((state.bytes.used, state.bytes.unused, state.bytes.peak), (0, 600, 1200));
        assert_eq!((state.reuse(512), state.reuse(600), state.reuse(600)), (None, Some(1), None));
        assert!(state.retain(1, 600));
        assert_eq!((state.evict(600), state.evict(0), state.evict(0)), (None, Some(1), None));
        assert_eq!(state.bytes.unused, 0);
    }

    #[test]
    fn a_pass_of_other_sizes_takes_the_place_of_free_memory() {
        let mut state = State { limit: 1000, ..State::default() };
        state.grow(900);
        assert!(state.retain(1, 900));
        // Two new slices, and a third one after the pass.
        assert_eq!([state.limit_beside(300), state.limit_beside(400)], [700, 300]);
        state.grown = 0;
        assert_eq!(state.limit_beside(600), 400);
        assert_eq!(state.limit_beside(600), 0);
    }
}
