//! Loads and stores that are plainly in order, which nearly all are: aligned, inside, of written bytes, and after every
//! earlier access by an earlier operation or a barrier. The first lane for which this does not hold, and all lanes
//! after it, are left to [`Machine::check`], which knows the other ways in which accesses can be ordered, and reports
//! those that are not.

use crate::exec::access::{is_aligned, number, put_number, resolve};
use crate::exec::block::BlockState;
use crate::exec::lanes;
use crate::exec::machine::Machine;
use crate::exec::memory_ops::sign_extended;
use crate::exec::warp::Warp;
use crate::instruction::{Reg, Space};
use crate::memory::Memory;
use crate::memory::shadow::{Lanes, WarpTouch};
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
    /// The bytes of a read in order: of these lanes, which share it.
    #[inline]
    fn read(&mut self, address: u64, length: usize, by: &WarpTouch<'_>, lanes: Lanes) -> Option<&[u8]> {
        match self {
            Self::Global(memory) => {
                let (index, start) = memory.find(address, length)?;
                let allocation = memory.allocation(index);
                let done = allocation.read_in_order(start, length, by, lanes);
                done.then(|| &allocation.data[start..start + length])
            }
            Self::Shared(memory) => {
                let start = memory.offset(address, length)?;
                memory.read_in_order(start, length, by, lanes).then(|| memory.bytes(start, length))
            }
            Self::Params(bytes) => bytes.get(address as usize..)?.get(..length),
        }
    }

    /// Room for a lane's write in order.
    #[inline]
    fn write(&mut self, address: u64, length: usize, by: &WarpTouch<'_>, lane: usize) -> Option<&mut [u8]> {
        match self {
            Self::Global(memory) => {
                let (index, start) = memory.find(address, length)?;
                let allocation = memory.allocation(index);
                let done = allocation.written_in_order(start, length, by, lane);
                done.then(|| &mut allocation.data[start..start + length])
            }
            Self::Shared(memory) => {
                let start = memory.offset(address, length)?;
                memory.written_in_order(start, length, by, lane).then(|| memory.bytes_mut(start, length))
            }
            Self::Params(_) => None,
        }
    }
}

/// The lane and those above it.
fn from(lane: usize) -> u32 {
    u32::MAX << lane
}

impl Machine<'_> {
    /// Loads what is plainly in order; the lanes that are left.
    pub(crate) fn load_in_order(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        space: Space,
        addresses: &Row,
        ty: Type,
        d: &[Reg],
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
        if active.count_ones() > 1 && lanes(active).all(|lane| addresses[lane] == addresses[first]) {
            let all = Lanes::All { last: active.ilog2() as usize };
            if !is_aligned(first_address, length) {
                return active;
            }
            let Some(bytes) = common.read(first_address, length, &by, all) else { return active };
            for (index, register) in d.iter().enumerate() {
                registers.put(*register, &[value(bytes, index); LANES], active);
            }
            return 0;
        }
        for lane in lanes(active) {
            let (space, address) = resolve(space, addresses[lane]);
            if space != common_space || !is_aligned(address, length) {
                return active & from(lane);
            }
            let Some(bytes) = common.read(address, length, &by, Lanes::One(lane)) else { return active & from(lane) };
            for (index, register) in d.iter().enumerate() {
                registers.put_lane(*register, lane, value(bytes, index));
            }
        }
        0
    }

    /// Stores what is plainly in order, of elements of `size` bytes; the lanes that are left.
    pub(crate) fn store_in_order(
        &mut self,
        block: &mut BlockState,
        warp: &Warp,
        active: u32,
        space: Space,
        addresses: &Row,
        size: usize,
        rows: &[Row],
    ) -> u32 {
        let length = size * rows.len();
        let (common_space, _) = resolve(space, addresses[active.trailing_zeros() as usize]);
        let by = self.warp_touch(block, warp.index, &warp.seen);
        let Some((mut common, by)) = self.common(common_space, block, by) else { return active };
        for lane in lanes(active) {
            let (space, address) = resolve(space, addresses[lane]);
            if space != common_space || !is_aligned(address, length) {
                return active & from(lane);
            }
            let Some(bytes) = common.write(address, length, &by, lane) else { return active & from(lane) };
            for (row, bytes) in rows.iter().zip(bytes.chunks_exact_mut(size)) {
                put_number(bytes, row[lane]);
            }
        }
        0
    }

    fn warp_touch<'a>(&self, block: &BlockState, warp: usize, seen: &'a [u32]) -> WarpTouch<'a> {
        WarpTouch { op: self.op.id, block: block.index, first_thread: (warp * LANES) as u16, epoch: self.clock, seen }
    }

    /// Memory of a space, and what touches it: operations on shared memory are blocks.
    fn common<'a, 'b>(
        &'a mut self,
        space: Space,
        block: &'a mut BlockState,
        by: WarpTouch<'b>,
    ) -> Option<(Common<'a>, WarpTouch<'b>)> {
        match space {
            // Operations that run at the same time have more to check.
            Space::Global if !self.op.concurrent.is_empty() => None,
            Space::Global => Some((Common::Global(self.memory), by)),
            Space::Shared => {
                let by = WarpTouch { op: block.shared.op(), ..by };
                Some((Common::Shared(&mut block.shared), by))
            }
            Space::Param => Some((Common::Params(self.launch.params), by)),
            _ => None,
        }
    }
}
