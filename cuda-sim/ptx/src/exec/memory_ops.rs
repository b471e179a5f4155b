//! Loads, stores, atomics, and what computes addresses.

use crate::exec::access::{Access, LOCAL_WINDOW, SHARED_WINDOW, Target, resolve};
use crate::exec::block::BlockState;
use crate::exec::lanes;
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::instruction::{AtomicFn, DISCARD, Instruction, Operand, Operation, Reg, Space};
use crate::row::Row;
use crate::stop::Stop;
use crate::types::Type;

impl Machine<'_> {
    pub(crate) fn memory_operation(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        at: &Instruction,
    ) -> Result<(), Stop> {
        let place = self.place(block);
        match &at.op {
            Operation::Load { space, ty, strong, d, address } => {
                let addresses = warp.addresses(*address, &place);
                self.loads(block, warp, active, &addresses, *space, *ty, *strong, d, at)
            }
            Operation::Store { space, ty, strong, sources, address } => {
                let addresses = warp.addresses(*address, &place);
                let rows: Vec<Row> = sources.iter().map(|source| warp.row(*source, &place)).collect();
                self.stores(block, warp, active, &addresses, *space, *ty, *strong, &rows, at)
            }
            Operation::Atomic { space, size, f, d, address, b, c } => {
                let addresses = warp.addresses(*address, &place);
                let operands = [*b, *c].map(|operand: Operand| warp.row(operand, &place));
                self.atomics(block, warp, active, &addresses, *space, *size, *f, *d, &operands, at)
            }
            Operation::ToGeneric { space, d, a } => {
                let window = window(*space);
                let row = warp.row(*a, &place).map(|offset| if window == 0 { offset } else { offset | window });
                warp.put(*d, &row, active);
                Ok(())
            }
            Operation::FromGeneric { space, d, a } => {
                let window = window(*space);
                let row = warp.row(*a, &place).map(|address| address & !window);
                warp.put(*d, &row, active);
                Ok(())
            }
            Operation::IsSpace { space, d, a } => {
                let row = warp.row(*a, &place).map(|address| u64::from(resolve(Space::Generic, address).0 == *space));
                warp.put(*d, &row, active);
                Ok(())
            }
            Operation::AsyncCopy { size, source_size, to, from } => {
                let to = warp.addresses(*to, &place);
                let from = warp.addresses(*from, &place);
                let read = source_size.map(|operand| warp.row(operand, &place));
                self.async_copy(block, warp, active, *size, &to, &from, read.as_ref(), at)
            }
            Operation::AsyncCommit => {
                warp.copies.commit(active);
                Ok(())
            }
            Operation::AsyncWait { keep } => self.async_wait(block, warp, active, *keep, at),
            _ => Ok(()),
        }
    }

    fn loads(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        addresses: &Row,
        space: Space,
        ty: Type,
        strong: bool,
        d: &[Reg],
        at: &Instruction,
    ) -> Result<(), Stop> {
        let size = ty.size();
        let length = size * d.len();
        let left = if strong {
            self.acquire(block);
            active
        } else {
            self.load_in_order(block, warp, active, space, addresses, ty, d)
        };
        for lane in lanes(left) {
            let access =
                Access { space, address: addresses[lane], length, lane, write: false, atomic: strong, stored: None };
            let target = self.check(block, warp, &access, at)?;
            for (index, register) in d.iter().enumerate() {
                let bits = self.load(block, warp, target.plus(index * size), size);
                let bits = if ty.is_signed() { sign_extended(bits, size) } else { bits };
                warp.put_lane(*register, lane, bits);
            }
        }
        self.count(space, addresses, active, length, false);
        Ok(())
    }

    fn stores(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        addresses: &Row,
        space: Space,
        ty: Type,
        strong: bool,
        rows: &[Row],
        at: &Instruction,
    ) -> Result<(), Stop> {
        let size = ty.size();
        let length = size * rows.len();
        let left = if strong { active } else { self.store_in_order(block, warp, active, space, addresses, size, rows) };
        for lane in lanes(left) {
            let mut bytes = [0; 32];
            for (index, row) in rows.iter().enumerate() {
                bytes[index * size..][..size].copy_from_slice(&row[lane].to_le_bytes()[..size]);
            }
            let bytes = &bytes[..length];
            let access = Access {
                space,
                address: addresses[lane],
                length,
                lane,
                write: true,
                atomic: strong,
                stored: Some(bytes),
            };
            let target = self.check(block, warp, &access, at)?;
            self.store(block, warp, target, bytes);
        }
        if strong {
            self.publish(block);
        }
        self.count(space, addresses, active, length, true);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "what an instruction needs of its surroundings")]
    fn atomics(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        addresses: &Row,
        space: Space,
        size: usize,
        f: AtomicFn,
        d: Reg,
        operands: &[Row; 2],
        at: &Instruction,
    ) -> Result<(), Stop> {
        // Lanes with one address are served in an order that nobody promises.
        let mut order: Vec<usize> = lanes(active).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, self.random.below(index + 1));
        }
        for lane in order {
            let access =
                Access { space, address: addresses[lane], length: size, lane, write: true, atomic: true, stored: None };
            let target = self.check(block, warp, &access, at)?;
            let old = self.load(block, warp, target, size);
            let new = f(old, operands[0][lane], operands[1][lane]);
            self.store(block, warp, target, &new.to_le_bytes()[..size]);
            if d != DISCARD {
                warp.put_lane(d, lane, old);
            }
            if let Target::Global(..) = target {
                self.publish(block);
                self.acquire(block);
            }
        }
        self.counters.atomics += u64::from(active.count_ones());
        self.count(space, addresses, active, size, true);
        Ok(())
    }

    /// Publishes the block's writes before its last fence to blocks that acquire later.
    fn publish(&mut self, block: &BlockState) {
        if block.fenced > 0 {
            self.clock += 1;
            self.publications.add(block.index, block.fenced, self.clock);
        }
    }

    fn acquire(&mut self, block: &mut BlockState) {
        self.clock += 1;
        block.acquired = self.clock;
    }
}

fn window(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        _ => 0,
    }
}

pub(crate) fn sign_extended(bits: u64, size: usize) -> u64 {
    let unused = 64 - size as u32 * 8;
    ((bits << unused) as i64 >> unused) as u64
}
