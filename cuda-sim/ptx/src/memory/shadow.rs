//! The last accesses to each word: the records from which races are found.
//!
//! An access is ordered before another one if the same thread made both, if a barrier of the block or the warp lies
//! between them, if its block published it (a fence and then an atomic) before the other's block acquired (an atomic),
//! or if it belongs to an earlier operation that the streams' order puts first. Anything else on a common byte is a race,
//! unless both only read or both are atomic.

use crate::memory::Op;

/// The thread of an entry that two threads of a warp wrote, each its own bytes.
const SEVERAL: u16 = 1 << 15;

/// One access of one thread. Operation 0 stands for none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Access {
    /// The operation: a launch or a copy.
    pub(crate) op: u32,
    /// The block's index in the grid.
    pub(crate) block: u32,
    /// The launch's clock when it happened.
    epoch: u32,
    /// The thread's index in the block.
    thread: u16,
    /// Bytes of the word.
    mask: u8,
    atomic: bool,
}

impl Access {
    /// The thread's index in its block.
    pub(crate) fn thread(self) -> u16 {
        self.thread & !SEVERAL
    }
}

/// The last write and the last reads by two different warps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Word {
    write: Access,
    reads: [Access; 2],
}

/// Times at which blocks published their writes, for readers in other blocks.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    /// The block, the clock at its fence, and the clock at its atomic, for each publication.
    entries: Vec<(u32, u32, u32)>,
}

impl Publications {
    pub(crate) fn add(&mut self, block: u32, fenced: u32, published: u32) {
        self.entries.push((block, fenced, published));
    }

    fn covers(&self, access: &Access, acquired: u32) -> bool {
        let covers = |(block, fenced, published): &(u32, u32, u32)| {
            *block == access.block && access.epoch < *fenced && *published < acquired
        };
        self.entries.iter().any(covers)
    }
}

/// The thread that touches memory now.
pub(crate) struct Toucher<'a> {
    pub(crate) op: &'a Op,
    pub(crate) block: u32,
    pub(crate) thread: u16,
    pub(crate) epoch: u32,
    pub(crate) atomic: bool,
    /// Clock for each warp of the block: accesses before it are ordered before this warp.
    pub(crate) seen: &'a [u32],
    /// The clock at the block's last acquiring atomic; 0 for none.
    pub(crate) acquired: u32,
    pub(crate) publications: &'a Publications,
}

impl Toucher<'_> {
    fn ordered(&self, before: &Access) -> bool {
        if before.op != self.op.id {
            return !self.op.concurrent.contains(&before.op);
        }
        if before.block != self.block {
            return self.publications.covers(before, self.acquired);
        }
        let warp = usize::from(before.thread()) / 32;
        let own_bytes_unknown = before.thread & SEVERAL != 0 && warp == usize::from(self.thread) / 32;
        before.thread == self.thread || own_bytes_unknown || before.epoch < self.seen[warp]
    }

    fn access(&self, mask: u8) -> Access {
        Access { op: self.op.id, block: self.block, epoch: self.epoch, thread: self.thread, mask, atomic: self.atomic }
    }
}

/// An instruction of a warp that touches memory, after every other operation: what its lanes' accesses have in common.
#[derive(Clone, Copy)]
pub(crate) struct WarpTouch<'a> {
    pub(crate) op: u32,
    pub(crate) block: u32,
    /// The thread of lane 0.
    pub(crate) first_thread: u16,
    pub(crate) epoch: u32,
    /// Clock for each warp of the block: accesses before it are ordered before this warp.
    pub(crate) seen: &'a [u32],
}

/// Lanes that touch the same bytes.
#[derive(Clone, Copy)]
pub(crate) enum Lanes {
    One(usize),
    All { last: usize },
}

impl WarpTouch<'_> {
    /// A lane's access to some bytes of a word.
    #[inline]
    fn access(&self, lane: usize, mask: u8) -> Access {
        let thread = self.first_thread + lane as u16;
        Access { op: self.op, block: self.block, epoch: self.epoch, thread, mask, atomic: false }
    }

    /// Whether an earlier access to some bytes is ordered before all lanes of the warp, or was one to others. What atomics
    /// order is not recognised.
    #[inline]
    fn warp_follows(&self, before: &Access, mask: u8) -> bool {
        before.op != self.op
            || before.mask & mask == 0
            || before.block == self.block && before.epoch < self.seen[usize::from(before.thread()) / 32]
    }

    /// Whether one lane's access follows the other; a lane also follows its own accesses.
    #[inline]
    fn lane_follows(&self, before: &Access, now: &Access) -> bool {
        self.warp_follows(before, now.mask) || before.block == now.block && before.thread == now.thread
    }
}

/// The words of `N` bytes that a range touches, and its bytes in each as bits.
#[inline]
pub(crate) fn words<const N: usize>(start: usize, length: usize) -> impl Iterator<Item = (usize, u8)> {
    (start / N..(start + length).div_ceil(N)).map(move |index| {
        let from = start.saturating_sub(index * N).min(N);
        let to = (start + length - index * N).min(N);
        (index, ((1u16 << to) - (1u16 << from)) as u8)
    })
}

/// An earlier access that nothing orders before this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    pub(crate) earlier: Access,
    pub(crate) earlier_wrote: bool,
}

impl Word {
    /// Records a read that is plainly ordered after the last write. Whether it is.
    #[inline]
    pub(crate) fn read_in_order(&mut self, mask: u8, by: &WarpTouch<'_>, lanes: Lanes) -> bool {
        let (now, ordered) = match lanes {
            Lanes::All { last } => (by.access(last, mask), by.warp_follows(&self.write, mask)),
            Lanes::One(lane) => {
                let now = by.access(lane, mask);
                (now, by.lane_follows(&self.write, &now))
            }
        };
        if ordered {
            self.record_read(now);
        }
        ordered
    }

    /// Records a lane's write that is plainly ordered after the last write and the last reads. Whether it is.
    #[inline]
    pub(crate) fn written_in_order(&mut self, mask: u8, by: &WarpTouch<'_>, lane: usize) -> bool {
        let now = by.access(lane, mask);
        let ordered = by.lane_follows(&self.write, &now) && self.reads.iter().all(|read| by.lane_follows(read, &now));
        if ordered {
            self.write = self.merged(now);
        }
        ordered
    }

    /// Checks an access and records it. A write that stores what is there already conflicts with no earlier write.
    pub(crate) fn touch(&mut self, mask: u8, write: bool, same: bool, by: &Toucher<'_>) -> Result<(), Conflict> {
        let last = self.write;
        let apart = last.op == 0 || last.mask & mask == 0 || by.atomic && last.atomic || write && same;
        if !apart && !by.ordered(&last) {
            return Err(Conflict { earlier: last, earlier_wrote: true });
        }
        if write {
            for read in self.reads {
                let apart = read.op == 0 || read.mask & mask == 0 || by.atomic && read.atomic;
                if !apart && !by.ordered(&read) {
                    return Err(Conflict { earlier: read, earlier_wrote: false });
                }
            }
            self.write = self.merged(by.access(mask));
        } else {
            self.record_read(by.access(mask));
        }
        Ok(())
    }

    #[inline]
    fn merged(&self, now: Access) -> Access {
        let last = self.write;
        let same_warp = last.op == now.op && last.block == now.block && last.thread() / 32 == now.thread / 32;
        if !same_warp || last.mask & now.mask != 0 {
            return now;
        }
        let thread = if last.thread == now.thread { now.thread } else { now.thread | SEVERAL };
        Access { thread, mask: last.mask | now.mask, ..now }
    }

    #[inline]
    fn record_read(&mut self, now: Access) {
        let last = self.reads[0];
        let same_warp = last.op == now.op && last.block == now.block && last.thread / 32 == now.thread / 32;
        if !same_warp {
            self.reads[1] = last;
        }
        self.reads[0] = now;
    }

    /// Operations on whole ranges: whether this word was touched by one that is concurrent with them.
    pub(crate) fn concurrent(&self, write: bool, op: &Op) -> Option<Conflict> {
        let unordered = |access: &Access| access.op != 0 && op.concurrent.contains(&access.op);
        if unordered(&self.write) {
            return Some(Conflict { earlier: self.write, earlier_wrote: true });
        }
        let read = self.reads.into_iter().find(|read| write && unordered(read))?;
        Some(Conflict { earlier: read, earlier_wrote: false })
    }
}
