//! The shared memory of one block.

use crate::memory::initialised::Initialised;
use crate::memory::shadow::{Conflict, Toucher, Word};

/// Bytes of a shadow word: those of a bf16, so that neighbours are told apart.
const WORD: usize = 2;

/// Blocks use it one after the other; what an earlier block left in the shadow has that block's number.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    data: Vec<u8>,
    initialised: Initialised,
    shadow: Vec<Word>,
}

/// Why an access of a thread stops the launch.
pub(crate) enum SharedRefusal {
    /// The offset of the first byte that was never written.
    Uninitialised(usize),
    Race(Conflict),
}

impl SharedMemory {
    pub(crate) fn new(size: usize) -> Self {
        let shadow = vec![Word::default(); size.div_ceil(WORD)];
        Self { data: vec![0; size], initialised: Initialised::new(size), shadow }
    }

    /// For the next block: nothing is written.
    pub(crate) fn clear(&mut self) {
        self.initialised.clear();
        self.shadow.fill(Word::default());
    }

    pub(crate) fn size(&self) -> usize {
        self.data.len()
    }

    /// The bytes of a range that was checked.
    pub(crate) fn bytes(&self, start: usize, length: usize) -> &[u8] {
        &self.data[start..start + length]
    }

    /// Stores bytes in a range that was checked.
    pub(crate) fn store(&mut self, start: usize, bytes: &[u8]) {
        self.data[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// As if a range was never written, until an asynchronous copy arrives there.
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
        by: &Toucher<'_>,
    ) -> Result<(), SharedRefusal> {
        let missing = self.initialised.first_missing(start, length);
        if let Some(missing) = missing.filter(|_| !write || by.atomic) {
            return Err(SharedRefusal::Uninitialised(missing));
        }
        let same = missing.is_none() && stored.is_some_and(|bytes| self.data[start..start + length] == *bytes);
        for index in start / WORD..(start + length).div_ceil(WORD) {
            let from = start.saturating_sub(index * WORD).min(WORD);
            let to = (start + length - index * WORD).min(WORD);
            let mask = ((1u8 << to) - (1u8 << from)) & 3;
            self.shadow[index].touch(mask, write, same, by).map_err(SharedRefusal::Race)?;
        }
        if write {
            self.initialised.set(start, length);
        }
        Ok(())
    }
}
