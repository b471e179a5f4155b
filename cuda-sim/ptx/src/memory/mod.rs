//! The device's memory: allocations at addresses of their own, with a gap after each and never used twice, so that an
//! address out of bounds or of freed memory is always recognised.

pub(crate) mod allocation;
pub(crate) mod initialised;
mod op;
pub(crate) mod shadow;
pub(crate) mod shared;

pub use op::Op;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::stop::{Stop, StopKind};
use allocation::{Allocation, Refusal};
use shared::SharedMemory;

/// Address of the first allocation; a process on Linux does not use it.
const FIRST: u64 = 0x5_0000_0000_0000;

/// Alignment of every allocation, as on a GPU; at least as many bytes after it are unused.
const ALIGNMENT: u64 = 512;

/// A request that the memory refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// More bytes than are left.
    #[error("out of memory")]
    OutOfMemory,
    /// No allocation begins at this address.
    #[error("no allocation begins at this address")]
    NoSuchAllocation,
}

/// All allocations of a device.
#[derive(Debug)]
pub struct Memory {
    allocations: Vec<Allocation>,
    freed: Vec<(u64, u64)>,
    next_address: u64,
    next_op: u32,
    /// Names of operations in messages.
    labels: BTreeMap<u32, String>,
    capacity: u64,
    used: u64,
    /// Index of the allocation of a thread's last access: usually the next access hits it, too.
    recent: usize,
    /// Shared memory of blocks that have ended, for the next ones.
    pub(crate) spare_shared: Vec<SharedMemory>,
}

impl Memory {
    /// Memory of `capacity` bytes.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            allocations: Vec::new(),
            freed: Vec::new(),
            next_address: FIRST,
            next_op: 1,
            labels: BTreeMap::new(),
            capacity,
            used: 0,
            recent: 0,
            spare_shared: Vec::new(),
        }
    }

    /// Memory whose addresses no other device of the process has.
    #[must_use]
    pub fn of_device(capacity: u64, device: usize) -> Self {
        Self { next_address: FIRST + ((device as u64) << 42), ..Self::new(capacity) }
    }

    /// Bytes that allocations hold.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The number of bytes of the memory.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The address of a new allocation.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfMemory`].
    pub fn allocate(&mut self, size: u64) -> Result<u64, MemoryError> {
        if size > self.capacity - self.used {
            return Err(MemoryError::OutOfMemory);
        }
        let base = self.next_address;
        self.next_address = (base + size).next_multiple_of(ALIGNMENT) + ALIGNMENT;
        self.used += size;
        self.allocations.push(Allocation::new(base, size as usize));
        Ok(base)
    }

    /// Makes an allocation read-only for kernels.
    pub fn make_constant(&mut self, address: u64) {
        if let Some(index) = self.index(address) {
            self.allocations[index].constant = true;
        }
    }

    /// Releases the allocation that begins at an address.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NoSuchAllocation`].
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let found = self.allocations.binary_search_by_key(&address, |a| a.base);
        let index = found.map_err(|_| MemoryError::NoSuchAllocation)?;
        let freed = self.allocations.remove(index);
        self.used -= freed.data.len() as u64;
        self.freed.push((freed.base, freed.end()));
        Ok(())
    }

    /// The number of a new operation; messages call it by its label.
    pub fn begin(&mut self, label: &str) -> u32 {
        let id = self.next_op;
        self.next_op += 1;
        self.labels.insert(id, label.to_owned());
        id
    }

    /// Forgets operations before `op`: everything to come is ordered after them.
    pub fn forget_before(&mut self, op: u32) {
        self.labels = self.labels.split_off(&op);
        for allocation in &mut self.allocations {
            allocation.forget_before(op);
        }
    }

    /// Name of an operation in messages.
    pub(crate) fn label(&self, op: u32) -> String {
        self.labels.get(&op).cloned().unwrap_or_else(|| format!("operation {op}"))
    }

    /// The size of the allocation that begins at an address.
    #[must_use]
    pub fn size_of(&self, address: u64) -> Option<u64> {
        let index = self.allocations.binary_search_by_key(&address, |a| a.base).ok()?;
        Some(self.allocations[index].data.len() as u64)
    }

    /// Reads bytes for the host.
    ///
    /// # Errors
    ///
    /// [`Stop`] for bytes out of bounds, and for bytes that nobody wrote.
    pub fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, Stop> {
        let (index, start) = self.range(address, length)?;
        let allocation = &self.allocations[index];
        if let Some(missing) = allocation.initialised.first_missing(start, length) {
            let message =
                format!("byte {} of {length} from {address:#x} is read but was never written", missing - start);
            return Err(Stop::new(StopKind::Uninitialised, message));
        }
        Ok(allocation.data[start..start + length].to_vec())
    }

    /// Writes bytes from the host.
    ///
    /// # Errors
    ///
    /// [`Stop`] for bytes out of bounds.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Stop> {
        let (index, start) = self.range(address, bytes.len())?;
        let allocation = &mut self.allocations[index];
        allocation.data[start..start + bytes.len()].copy_from_slice(bytes);
        allocation.initialised.set(start, bytes.len());
        Ok(())
    }

    /// Copies within the device; what was never written stays so.
    ///
    /// # Errors
    ///
    /// [`Stop`] for bytes out of bounds.
    pub fn copy(&mut self, to: u64, from: u64, length: usize) -> Result<(), Stop> {
        let (source, from) = self.range(from, length)?;
        let (target, to) = self.range(to, length)?;
        let data = self.allocations[source].data[from..from + length].to_vec();
        let written = self.allocations[source].initialised.runs(from, length);
        let allocation = &mut self.allocations[target];
        allocation.data[to..to + length].copy_from_slice(&data);
        allocation.initialised.unset(to, length);
        for (start, end) in written {
            allocation.initialised.set(to + start, end - start);
        }
        Ok(())
    }

    /// Checks that nothing concurrent touches a range that an operation reads or writes, and records the operation.
    ///
    /// # Errors
    ///
    /// [`Stop`] for bytes out of bounds, and for a conflict with another stream.
    pub fn touch(&mut self, address: u64, length: usize, write: bool, op: &Op) -> Result<(), Stop> {
        let (index, start) = self.range(address, length)?;
        match self.allocations[index].touch_range(start, length, write, op) {
            Ok(()) => Ok(()),
            Err(Refusal::Stream { op: other, wrote }) => {
                let (label, other) = (self.label(op.id), self.label(other));
                Err(Stop::new(StopKind::StreamOrder, stream_message(&label, write, &other, wrote, address)))
            }
            Err(_) => Ok(()),
        }
    }

    /// The allocation that holds an address.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        let index = self.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        (address < self.allocations[index].end()).then_some(index)
    }

    pub(crate) fn allocation(&mut self, index: usize) -> &mut Allocation {
        &mut self.allocations[index]
    }

    /// The allocation that holds the range of an access, and the range's offset in it. Many accesses follow each other in
    /// one.
    #[inline]
    pub(crate) fn find(&mut self, address: u64, length: usize) -> Option<(usize, usize)> {
        if let Some(start) = self.allocations.get(self.recent).and_then(|recent| recent.offset(address, length)) {
            return Some((self.recent, start));
        }
        let found = self.search(address, length)?;
        self.recent = found.0;
        Some(found)
    }

    fn search(&self, address: u64, length: usize) -> Option<(usize, usize)> {
        let index = self.allocations.partition_point(|a| a.base <= address).checked_sub(1)?;
        Some((index, self.allocations[index].offset(address, length)?))
    }

    /// The allocation that holds a range, and the range's offset in it.
    pub(crate) fn range(&self, address: u64, length: usize) -> Result<(usize, usize), Stop> {
        let outside = || format!("{length} bytes at {address:#x}: {}", self.describe(address));
        self.search(address, length).ok_or_else(|| Stop::new(StopKind::OutOfBounds, outside()))
    }

    /// Description of the allocation at an address, or before it.
    pub(crate) fn describe(&self, address: u64) -> String {
        if let Some((base, end)) = self.freed.iter().find(|(base, end)| (*base..*end).contains(&address)) {
            return format!("inside freed memory ({:#x}, {} bytes)", base, end - base);
        }
        match self.allocations.partition_point(|a| a.base <= address).checked_sub(1) {
            Some(index) => {
                let allocation = &self.allocations[index];
                let (offset, size) = (address - allocation.base, allocation.data.len());
                format!("offset {offset} of the allocation of {size} bytes at {:#x}", allocation.base)
            }
            None => "outside every allocation".to_owned(),
        }
    }
}

/// Two operations that no event orders.
pub(crate) fn stream_message(now: &str, write: bool, earlier: &str, wrote: bool, address: u64) -> String {
    let verb = |write: bool| if write { "writes" } else { "reads" };
    format!(
        "missing event wait: {now} {} {address:#x}, which {earlier} {}; nothing orders these two operations",
        verb(write),
        verb(wrote)
    )
}
