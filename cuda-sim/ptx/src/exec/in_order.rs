//! Loads and stores that are plainly in order, which nearly all are: aligned, inside, of written bytes, and after every earlier access by
//! an earlier operation or a barrier. All others are left to [`Machine::check`], which knows the other ways in which accesses can be
//! ordered, and what to say of those that are not.

use crate::exec::access::{number, put_number, resolve};
use crate::exec::block::BlockState;
use crate::exec::lanes;
use crate::exec::machine::Machine;
use crate::exec::memory_ops::sign_extended;
use crate::exec::warp::Warp;
use crate::instruction::{Reg, Space};
use crate::memory::Memory;
use crate::memory::shadow::WarpTouch;
use crate::memory::shared::SharedMemory;
use crate::row::{LANES, Row};
use crate::types::Type;

/// Memory that many threads share.
enum Common<'a> {
    Global(&'a mut Memory),
    Shared(&'a mut SharedMemory),
    Params(&'a [u8]),
}

impl Common<'_> {
    /// The bytes of a read in order: of all lanes if `shared`, else of the one named.
    #[inline]
    fn read(
        &mut self,
        (address, length): (u64, usize),
        (lane, shared): (usize, bool),
        by: &WarpTouch<'_>,
    ) -> Option<&[u8]> {
        if !aligned(address, length) {
            return None;
        }
        match self {
            Self::Global(memory) => {
                let (index, start) = memory.find(address, length)?;
                let allocation = memory.allocation(index);
                let done = allocation.read_in_order((start, length), (lane, shared), by);
                done.then(|| &allocation.data[start..start + length])
            }
            Self::Shared(memory) => {
                let start = memory.offset(address, length)?;
                memory.read_in_order((start, length), (lane, shared), by).then(|| memory.bytes(start, length))
            }
            Self::Params(bytes) => bytes.get(address as usize..)?.get(..length),
        }
    }

    /// Room for a lane's write in order.
    #[inline]
    fn write(&mut self, (address, length): (u64, usize), lane: usize, by: &WarpTouch<'_>) -> Option<&mut [u8]> {
        if !aligned(address, length) {
            return None;
        }
        match self {
            Self::Global(memory) => {
                let (index, start) = memory.find(address, length)?;
                let allocation = memory.allocation(index);
                let done = allocation.written_in_order((start, length), lane, by);
                done.then(|| &mut allocation.data[start..start + length])
            }
            Self::Shared(memory) => {
                let start = memory.offset(address, length)?;
                memory.written_in_order((start, length), lane, by).then(|| memory.bytes_mut(start, length))
            }
            Self::Params(_) => None,
        }
    }
}

#[inline]
fn aligned(address: u64, length: usize) -> bool {
    address & (length.next_power_of_two().min(16) as u64 - 1) == 0
}

impl Machine<'_> {
    /// Loads what is plainly in order; the lanes that are left.
    pub(crate) fn load_in_order(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        (space, addresses): (Space, &Row),
        (ty, d): (Type, &[Reg]),
    ) -> u32 {
        let size = ty.size();
        let length = size * d.len();
        let first = active.trailing_zeros() as usize;
        let (common_space, first_address) = resolve(space, addresses[first]);
        let Warp { index, seen, registers, .. } = warp;
        let by = self.warp_touch(block, *index, seen);
        let Some((mut common, by)) = self.common(common_space, block, by) else { return active };
        let value = |bytes: &[u8], index: usize| {
            let bits = number(&bytes[index * size..][..size]);
            if ty.is_signed() { sign_extended(bits, size) } else { bits }
        };
        // One address for all: what a lane's read is checked for holds for the others.
        if lanes(active).all(|lane| addresses[lane] == addresses[first]) {
            let last = active.ilog2() as usize;
            let Some(bytes) = common.read((first_address, length), (last, true), &by) else { return active };
            for (index, register) in d.iter().enumerate() {
                registers.put(*register, &[value(bytes, index); LANES], active);
            }
            return 0;
        }
        let mut left = 0;
        for lane in lanes(active) {
            let (space, address) = resolve(space, addresses[lane]);
            let same_space = space == common_space;
            match if same_space { common.read((address, length), (lane, false), &by) } else { None } {
                Some(bytes) => {
                    for (index, register) in d.iter().enumerate() {
                        registers.put_lane(*register, lane, value(bytes, index));
                    }
                }
                None => left |= 1 << lane,
            }
        }
        left
    }

    /// Stores what is plainly in order, of elements of `size` bytes; the lanes that are left.
    pub(crate) fn store_in_order(
        &mut self,
        block: &mut BlockState,
        warp: &Warp,
        active: u32,
        (space, addresses): (Space, &Row),
        (size, rows): (usize, &[Row]),
    ) -> u32 {
        let length = size * rows.len();
        let (common_space, _) = resolve(space, addresses[active.trailing_zeros() as usize]);
        let by = self.warp_touch(block, warp.index, &warp.seen);
        let Some((mut common, by)) = self.common(common_space, block, by) else { return active };
        let mut left = 0;
        for lane in lanes(active) {
            let (space, address) = resolve(space, addresses[lane]);
            let same_space = space == common_space;
            match if same_space { common.write((address, length), lane, &by) } else { None } {
                Some(bytes) => {
                    for (row, bytes) in rows.iter().zip(bytes.chunks_exact_mut(size)) {
                        put_number(bytes, row[lane]);
                    }
                }
                None => left |= 1 << lane,
            }
        }
        left
    }

    fn warp_touch<'a>(&self, block: &BlockState, warp: usize, seen: &'a [u32]) -> WarpTouch<'a> {
        WarpTouch {
            op: self.op.id,
            in_order: self.op.concurrent.is_empty(),
            block: block.index,
            first_thread: (warp * LANES) as u16,
            epoch: self.clock,
            seen,
        }
    }

    /// Memory of a space, and what touches it: operations on shared memory are blocks.
    fn common<'a, 'b>(
        &'a mut self,
        space: Space,
        block: &'a mut BlockState,
        by: WarpTouch<'b>,
    ) -> Option<(Common<'a>, WarpTouch<'b>)> {
        match space {
            Space::Global => Some((Common::Global(self.memory), by)),
            Space::Shared => {
                let by = WarpTouch { op: block.shared.op(), in_order: true, ..by };
                Some((Common::Shared(&mut block.shared), by))
            }
            Space::Param => Some((Common::Params(self.launch.params), by)),
            _ => None,
        }
    }
}
