//! The shared memory of one block.

use crate::memory::Op;
use crate::memory::initialised::Initialised;
use crate::memory::shadow::{Conflict, Lanes, Toucher, WarpTouch, Word, words};

/// Bytes of a shadow word: those of a bf16, so that neighbours are told apart.
const WORD: usize = 2;

/// Blocks use it one after the other. Each counts as an operation of its own, ordered after all that earlier blocks left in
/// the shadow.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    data: Vec<u8>,
    initialised: Initialised,
    shadow: Vec<Word>,
    op: Op,
}

/// Why an access of a thread stops the launch.
pub(crate) enum SharedRefusal {
    /// The offset of the first byte that was never written.
    Uninitialised(usize),
    Race(Conflict),
}

impl SharedMemory {
    pub(crate) fn new() -> Self {
        Self { data: Vec::new(), initialised: Initialised::new(0), shadow: Vec::new(), op: Op::default() }
    }

    /// Prepares the memory for the next block, with `size` bytes: all count as unwritten.
    pub(crate) fn reuse(&mut self, size: usize) {
        self.data.resize(size, 0);
        self.initialised.reset(size);
        if self.shadow.len() < size.div_ceil(WORD) {
            self.shadow.resize(size.div_ceil(WORD), Word::default());
        }
        self.op.id += 1;
    }

    /// The number of the block that uses it now.
    pub(crate) fn op(&self) -> u32 {
        self.op.id
    }

    pub(crate) fn size(&self) -> usize {
        self.data.len()
    }

    /// The bytes of a range that was checked.
    pub(crate) fn bytes(&self, start: usize, length: usize) -> &[u8] {
        &self.data[start..start + length]
    }

    /// Start of a range that lies inside.
    #[inline]
    pub(crate) fn offset(&self, address: u64, length: usize) -> Option<usize> {
        let start = address as usize;
        (start.checked_add(length)? <= self.data.len()).then_some(start)
    }

    /// Room in a range that was checked.
    pub(crate) fn bytes_mut(&mut self, start: usize, length: usize) -> &mut [u8] {
        &mut self.data[start..start + length]
    }

    /// Stores bytes in a range that was checked.
    pub(crate) fn store(&mut self, start: usize, bytes: &[u8]) {
        self.data[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Marks a range as never written, until an asynchronous copy arrives there.
    pub(crate) fn expect(&mut self, start: usize, length: usize) {
        self.initialised.unset(start, length);
    }

    /// Checks and records an access inside the memory.
    pub(crate) fn touch(
        &mut self,
        start: usize,
        length: usize,
        stored: Option<&[u8]>,
        write: bool,
        by: Toucher<'_>,
    ) -> Result<(), SharedRefusal> {
        let by = Toucher { op: &self.op, ..by };
        let missing = self.initialised.first_missing(start, length);
        if let Some(missing) = missing.filter(|_| !write || by.atomic) {
            return Err(SharedRefusal::Uninitialised(missing));
        }
        let same = missing.is_none() && stored.is_some_and(|bytes| self.data[start..start + length] == *bytes);
        for (index, mask) in words::<WORD>(start, length) {
            self.shadow[index].touch(mask, write, same, &by).map_err(SharedRefusal::Race)?;
        }
        if write {
            self.initialised.set(start, length);
        }
        Ok(())
    }

    /// Records a read inside the memory, of written bytes, that is plainly ordered. Whether it is.
    #[inline]
    pub(crate) fn read_in_order(&mut self, start: usize, length: usize, by: &WarpTouch<'_>, lanes: Lanes) -> bool {
        self.initialised.covers(start, length)
            && words::<WORD>(start, length).all(|(index, mask)| self.shadow[index].read_in_order(mask, by, lanes))
    }

    /// Records a lane's write inside the memory that is plainly ordered. Whether it is.
    #[inline]
    pub(crate) fn written_in_order(&mut self, start: usize, length: usize, by: &WarpTouch<'_>, lane: usize) -> bool {
        let ordered =
            words::<WORD>(start, length).all(|(index, mask)| self.shadow[index].written_in_order(mask, by, lane));
        if ordered {
            self.initialised.set(start, length);
        }
        ordered
    }
}
