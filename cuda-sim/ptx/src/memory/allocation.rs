//! One allocation: its bytes, the record of written ones, and their last accesses.

use crate::memory::Op;
use crate::memory::initialised::Initialised;
use crate::memory::shadow::{Conflict, Lanes, Toucher, WarpTouch, Word, words};

/// Bytes of a shadow word.
const WORD: usize = 4;

/// Words whose shadow is made together, when the first of them is touched by a kernel.
const CHUNK: usize = 4096;

#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) data: Vec<u8>,
    pub(crate) initialised: Initialised,
    /// Kernels only read it.
    pub(crate) constant: bool,
    shadow: Vec<Option<Box<[Word]>>>,
    /// Accesses of copies and the like.
    ranges: Vec<RangeAccess>,
}

#[derive(Debug, Clone, Copy)]
struct RangeAccess {
    start: usize,
    end: usize,
    op: u32,
    write: bool,
}

/// Why an access of a thread stops the launch.
#[derive(Debug)]
pub(crate) enum Refusal {
    Constant,
    /// The offset of the first byte that was never written.
    Uninitialised(usize),
    Race(Conflict),
    /// The other operation, and whether it wrote.
    Stream {
        op: u32,
        wrote: bool,
    },
}

impl Allocation {
    pub(crate) fn new(base: u64, size: usize) -> Self {
        let chunks = size.div_ceil(WORD * CHUNK);
        Self {
            base,
            data: vec![0; size],
            initialised: Initialised::new(size),
            constant: false,
            shadow: vec![None; chunks],
            ranges: Vec::new(),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.base + self.data.len() as u64
    }

    /// Offset of a range of addresses, if all of it lies inside.
    #[inline]
    pub(crate) fn offset(&self, address: u64, length: usize) -> Option<usize> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        (start.checked_add(length)? <= self.data.len()).then_some(start)
    }

    /// Checks a thread's access; the range lies inside. `stored` is what a write will put there.
    pub(crate) fn touch(
        &mut self,
        start: usize,
        length: usize,
        stored: Option<&[u8]>,
        write: bool,
        by: &Toucher<'_>,
    ) -> Result<(), Refusal> {
        if write && self.constant {
            return Err(Refusal::Constant);
        }
        let reads = !write || by.atomic;
        if let Some(missing) = self.initialised.first_missing(start, length).filter(|_| reads) {
            return Err(Refusal::Uninitialised(missing));
        }
        if !by.op.concurrent.is_empty() {
            self.concurrent_range(start, start + length, write, by.op)?;
        }
        let same = stored.is_some_and(|bytes| {
            self.initialised.first_missing(start, length).is_none() && self.data[start..start + length] == *bytes
        });
        for (index, mask) in words::<WORD>(start, length) {
            self.word(index).touch(mask, write, same, by).map_err(Refusal::Race)?;
        }
        if write {
            self.initialised.set(start, length);
        }
        Ok(())
    }

    /// The shadow of a word.
    #[inline]
    fn word(&mut self, index: usize) -> &mut Word {
        let first = index - index % CHUNK;
        let words = (self.data.len().div_ceil(WORD) - first).min(CHUNK);
        let chunk = self.shadow[index / CHUNK].get_or_insert_with(|| vec![Word::default(); words].into());
        &mut chunk[index % CHUNK]
    }

    /// Records a read of written bytes that is plainly ordered. Whether it is.
    #[inline]
    pub(crate) fn read_in_order(&mut self, start: usize, length: usize, by: &WarpTouch<'_>, lanes: Lanes) -> bool {
        self.initialised.covers(start, length)
            && words::<WORD>(start, length).all(|(index, mask)| self.word(index).read_in_order(mask, by, lanes))
    }

    /// Records a lane's write that is plainly ordered. Whether it is.
    #[inline]
    pub(crate) fn written_in_order(&mut self, start: usize, length: usize, by: &WarpTouch<'_>, lane: usize) -> bool {
        let ordered = !self.constant
            && words::<WORD>(start, length).all(|(index, mask)| self.word(index).written_in_order(mask, by, lane));
        if ordered {
            self.initialised.set(start, length);
        }
        ordered
    }

    /// Checks and records an operation on a whole range: a copy, a memset, a library's call.
    pub(crate) fn touch_range(&mut self, start: usize, length: usize, write: bool, op: &Op) -> Result<(), Refusal> {
        let end = start + length;
        if !op.concurrent.is_empty() {
            self.concurrent_range(start, end, write, op)?;
            for index in start / WORD..end.div_ceil(WORD) {
                let Some(chunk) = &self.shadow[index / CHUNK] else { continue };
                if let Some(conflict) = chunk[index % CHUNK].concurrent(write, op) {
                    return Err(Refusal::Stream { op: conflict.earlier.op, wrote: conflict.earlier_wrote });
                }
            }
        }
        self.ranges.push(RangeAccess { start, end, op: op.id, write });
        Ok(())
    }

    fn concurrent_range(&self, start: usize, end: usize, write: bool, op: &Op) -> Result<(), Refusal> {
        let clash = |range: &&RangeAccess| {
            range.start < end && start < range.end && (write || range.write) && op.concurrent.contains(&range.op)
        };
        match self.ranges.iter().find(clash) {
            Some(range) => Err(Refusal::Stream { op: range.op, wrote: range.write }),
            None => Ok(()),
        }
    }

    /// Forgets operations on ranges that everything to come is ordered after.
    pub(crate) fn forget_before(&mut self, op: u32) {
        self.ranges.retain(|range| range.op >= op);
    }
}
