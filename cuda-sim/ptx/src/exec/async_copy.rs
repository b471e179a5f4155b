//! `cp.async`: copies from global to shared memory that arrive when a thread waits for them, as late as they may.

use crate::exec::access::{Access, Target};
use crate::exec::block::BlockState;
use crate::exec::copies::Copy;
use crate::exec::lanes;
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::instruction::{Instruction, Space};
use crate::row::Row;
use crate::stop::Stop;

impl Machine<'_> {
    /// Reads the source now. The target counts as written now and as unwritten until the copy arrives.
    pub(crate) fn async_copy(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        size: usize,
        to: &Row,
        from: &Row,
        read: Option<&Row>,
        at: &Instruction,
    ) -> Result<(), Stop> {
        for lane in lanes(active) {
            let length = read.map_or(size, |row| (row[lane] as u32 as usize).min(size));
            let mut bytes = vec![0; size];
            if length > 0 {
                let source = Access {
                    space: Space::Global,
                    address: from[lane],
                    length,
                    lane,
                    write: false,
                    atomic: false,
                    stored: None,
                };
                if let Target::Global(index, start) = self.check(block, warp, &source, at)? {
                    let data = &self.memory.allocation(index).data[start..start + length];
                    bytes[..length].copy_from_slice(data);
                }
            }
            if let Target::Shared(start) = self.check(block, warp, &shared_write(to[lane], size, lane), at)? {
                block.shared.expect(start, size);
            }
            warp.copies.add(lane, Copy { to: to[lane], bytes });
        }
        self.count(Space::Global, from, active, size, false);
        self.count(Space::Shared, to, active, size, true);
        Ok(())
    }

    /// Lets all but the newest `keep` groups arrive.
    pub(crate) fn async_wait(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        keep: usize,
        at: &Instruction,
    ) -> Result<(), Stop> {
        for lane in lanes(active) {
            while let Some(copies) = warp.copies.take(lane, keep) {
                for copy in copies {
                    let access = shared_write(copy.to, copy.bytes.len(), lane);
                    let target = self.check(block, warp, &access, at)?;
                    self.store(block, warp, target, &copy.bytes);
                }
            }
        }
        Ok(())
    }
}

fn shared_write(address: u64, length: usize, lane: usize) -> Access<'static> {
    Access { space: Space::Shared, address, length, lane, write: true, atomic: false, stored: None }
}
