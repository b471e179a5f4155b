//! Checked accesses of threads to shared, global and local memory.

use crate::exec::block::BlockState;
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::instruction::{Instruction, Space};
use crate::memory::allocation::Refusal;
use crate::memory::shadow::{Conflict, Toucher};
use crate::memory::shared::SharedRefusal;
use crate::memory::stream_message;
use crate::row::LANES;
use crate::stop::{Stop, StopKind};

/// Start of the window of shared memory among generic addresses.
pub(crate) const SHARED_WINDOW: u64 = 1 << 56;
pub(crate) const LOCAL_WINDOW: u64 = 2 << 56;
const WINDOW_MASK: u64 = 0xff << 56;

/// A memory access of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) space: Space,
    pub(crate) address: u64,
    pub(crate) length: usize,
    pub(crate) lane: usize,
    pub(crate) write: bool,
    pub(crate) atomic: bool,
    /// Bytes that a store will write there.
    pub(crate) stored: Option<&'a [u8]>,
}

/// A range that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Index of an allocation, and offset in it.
    Global(usize, usize),
    Shared(usize),
    /// Offset in the warp's local memory.
    Local(usize),
    Param(usize),
}

/// The space and the offset of a generic address.
pub(crate) fn resolve(space: Space, address: u64) -> (Space, u64) {
    match (space, address & WINDOW_MASK) {
        (Space::Generic, SHARED_WINDOW) => (Space::Shared, address & !WINDOW_MASK),
        (Space::Generic, LOCAL_WINDOW) => (Space::Local, address & !WINDOW_MASK),
        (Space::Generic | Space::Const, _) => (Space::Global, address),
        // Addresses of shared memory are 32 bits wide.
        (Space::Shared, _) => (space, address & 0xffff_ffff),
        _ => (space, address),
    }
}

impl Machine<'_> {
    /// Checks an access, and records it for the accesses to come.
    pub(crate) fn check(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        access: &Access<'_>,
        instruction: &Instruction,
    ) -> Result<Target, Stop> {
        let thread = warp.index * LANES + access.lane;
        let (space, address) = resolve(access.space, access.address);
        let length = access.length;
        let verb = if access.write { "store" } else { "load" };
        let stop = |machine: &Self, block: &BlockState, kind, what: &str| {
            Err(machine.stop(kind, what, block, thread, instruction))
        };
        if !is_aligned(address, length) {
            let what = format!("misaligned {verb} of {length} bytes at {address:#x} ({space:?})");
            return stop(self, block, StopKind::Misaligned, &what);
        }
        match space {
            Space::Shared => {
                let Some(start) = block.shared.offset(address, length) else {
                    let size = block.shared.size();
                    let what =
                        format!("{verb} of {length} bytes at {address} out of bounds of {size} bytes of shared memory");
                    return stop(self, block, StopKind::OutOfBounds, &what);
                };
                let BlockState { shared, index, acquired, .. } = block;
                let by = Toucher {
                    op: &self.op,
                    block: *index,
                    thread: thread as u16,
                    epoch: self.clock,
                    atomic: access.atomic,
                    seen: &warp.seen,
                    acquired: *acquired,
                    publications: &self.publications,
                };
                match shared.touch(start, length, access.stored, access.write, by) {
                    Ok(()) => Ok(Target::Shared(start)),
                    Err(SharedRefusal::Uninitialised(byte)) => {
                        let what = format!(
                            "uninitialised read: shared byte {byte} was never written, or a copy to it is still under way,"
                        );
                        stop(self, block, StopKind::Uninitialised, &what)
                    }
                    Err(SharedRefusal::Race(conflict)) => {
                        let what = race("shared", address, access.write, &conflict, None);
                        stop(self, block, StopKind::Race, &what)
                    }
                }
            }
            Space::Local => {
                let size = self.launch.kernel.local;
                let start = address as usize;
                if start + length > size {
                    let what =
                        format!("{verb} of {length} bytes at {start} out of bounds of {size} bytes of local memory");
                    return stop(self, block, StopKind::OutOfBounds, &what);
                }
                let at = access.lane * size + start;
                if access.write {
                    warp.local_written.set(at, length);
                } else if warp.local_written.first_missing(at, length).is_some() {
                    let what = format!("uninitialised read: local bytes at {start} were never written");
                    return stop(self, block, StopKind::Uninitialised, &what);
                }
                Ok(Target::Local(at))
            }
            Space::Param => {
                let start = address as usize;
                if start + length > self.launch.params.len() {
                    return stop(self, block, StopKind::OutOfBounds, "load beyond the parameters");
                }
                Ok(Target::Param(start))
            }
            _ => self.check_global(block, warp, access, instruction),
        }
    }

    fn check_global(
        &mut self,
        block: &BlockState,
        warp: &Warp,
        access: &Access<'_>,
        instruction: &Instruction,
    ) -> Result<Target, Stop> {
        let thread = warp.index * LANES + access.lane;
        let Access { address, length, write, .. } = *access;
        let verb = if write { "store" } else { "load" };
        let Some((index, start)) = self.memory.find(address, length) else {
            let place = self.memory.describe(address);
            let what = format!("{verb} of {length} bytes at {address:#x} out of bounds: {place},");
            return Err(self.stop(StopKind::OutOfBounds, &what, block, thread, instruction));
        };
        let by = Toucher {
            op: &self.op,
            block: block.index,
            thread: thread as u16,
            epoch: self.clock,
            atomic: access.atomic,
            seen: &warp.seen,
            acquired: block.acquired,
            publications: &self.publications,
        };
        let touched = self.memory.allocation(index).touch(start, length, access.stored, write, &by);
        let (kind, what) = match touched {
            Ok(()) => return Ok(Target::Global(index, start)),
            Err(Refusal::Constant) => (StopKind::OutOfBounds, "store to constant memory".to_owned()),
            Err(Refusal::Uninitialised(byte)) => {
                let place = self.memory.describe(address + (byte - start) as u64);
                (StopKind::Uninitialised, format!("uninitialised read: {place} was never written,"))
            }
            Err(Refusal::Race(conflict)) if conflict.earlier.op == self.op.id => {
                (StopKind::Race, race("global", address, write, &conflict, Some(block.index)))
            }
            Err(Refusal::Race(conflict)) => {
                let (now, earlier) = (self.memory.label(self.op.id), self.memory.label(conflict.earlier.op));
                (StopKind::StreamOrder, stream_message(&now, write, &earlier, conflict.earlier_wrote, address))
            }
            Err(Refusal::Stream { op, wrote }) => {
                let (now, earlier) = (self.memory.label(self.op.id), self.memory.label(op));
                (StopKind::StreamOrder, stream_message(&now, write, &earlier, wrote, address))
            }
        };
        Err(self.stop(kind, &what, block, thread, instruction))
    }

    /// The bytes of a checked range, as a number.
    pub(crate) fn load(&mut self, block: &BlockState, warp: &Warp, target: Target, length: usize) -> u64 {
        let bytes = match target {
            Target::Global(index, start) => &self.memory.allocation(index).data[start..start + length],
            Target::Shared(start) => block.shared.bytes(start, length),
            Target::Local(start) => &warp.local[start..start + length],
            Target::Param(start) => &self.launch.params[start..start + length],
        };
        number(bytes)
    }

    /// Stores bytes in a checked range.
    pub(crate) fn store(&mut self, block: &mut BlockState, warp: &mut Warp, target: Target, bytes: &[u8]) {
        match target {
            Target::Global(index, start) => {
                self.memory.allocation(index).data[start..start + bytes.len()].copy_from_slice(bytes);
            }
            Target::Shared(start) => block.shared.store(start, bytes),
            Target::Local(start) => warp.local[start..start + bytes.len()].copy_from_slice(bytes),
            Target::Param(_) => {}
        }
    }
}

/// Whether an address is a multiple of the alignment of an access of `length` bytes.
#[inline]
pub(crate) fn is_aligned(address: u64, length: usize) -> bool {
    address & (length.next_power_of_two().min(16) as u64 - 1) == 0
}

/// Up to eight bytes as a number.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

/// Writes the low bytes of a number into `bytes`, up to eight.
#[inline]
pub(crate) fn put_number(bytes: &mut [u8], value: u64) {
    match bytes.len() {
        1 => bytes.copy_from_slice(&(value as u8).to_le_bytes()),
        2 => bytes.copy_from_slice(&(value as u16).to_le_bytes()),
        4 => bytes.copy_from_slice(&(value as u32).to_le_bytes()),
        8 => bytes.copy_from_slice(&value.to_le_bytes()),
        _ => bytes.iter_mut().zip(value.to_le_bytes()).for_each(|(to, byte)| *to = byte),
    }
}

/// The same range with an offset.
impl Target {
    pub(crate) fn plus(self, offset: usize) -> Self {
        match self {
            Self::Global(index, start) => Self::Global(index, start + offset),
            Self::Shared(start) => Self::Shared(start + offset),
            Self::Local(start) => Self::Local(start + offset),
            Self::Param(start) => Self::Param(start + offset),
        }
    }
}

fn race(memory: &str, address: u64, write: bool, conflict: &Conflict, block: Option<u32>) -> String {
    let verb = |write: bool| if write { "written" } else { "read" };
    let Conflict { earlier, earlier_wrote } = conflict;
    let who = match block {
        Some(block) if block != earlier.block => format!("block number {} thread {}", earlier.block, earlier.thread()),
        _ => format!("thread {}", earlier.thread()),
    };
    let before = verb(*earlier_wrote);
    format!(
        "race: {memory} address {address:#x} was {before} by {who} and is now {} without a barrier between,",
        verb(write)
    )
}
