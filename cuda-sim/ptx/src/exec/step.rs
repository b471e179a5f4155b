//! One instruction of one group of lanes.

use crate::exec::barrier::{Arrival, Reduction};
use crate::exec::block::BlockState;
use crate::exec::machine::Machine;
use crate::exec::warp::{State, Warp};
use crate::instruction::{Combine, DISCARD, Instruction, Operand, Operation, VoteMode};
use crate::row::{LANES, Row};
use crate::stop::{Stop, StopKind};

impl Machine<'_> {
    /// Runs the instruction at which a group stands.
    pub(crate) fn step(&mut self, block: &mut BlockState, warp: &mut Warp, group: usize) -> Result<(), Stop> {
        self.counters.instructions += 1;
        let kernel = self.launch.kernel;
        let at = warp.groups[group];
        let instruction = &kernel.code[at.pc];
        let active = match instruction.guard {
            Some((register, negated)) => {
                let row = warp.register(register);
                let holds = |lane: &usize| (row[*lane] & 1 != 0) != negated;
                super::lanes(at.lanes).filter(holds).fold(0, |mask, lane| mask | 1 << lane)
            }
            None => at.lanes,
        };
        match &instruction.op {
            Operation::Branch { target } => warp.branch(group, active, *target),
            Operation::Exit => warp.exit(group, active),
            _ if active == 0 => warp.advance(group),
            Operation::Barrier { .. } | Operation::BarrierReduce { .. } => {
                self.barrier(block, warp, group, active, instruction)?;
            }
            op if op.is_collective() => self.collective(block, warp, group, active, instruction)?,
            Operation::Trap => {
                let thread = warp.index * LANES + active.trailing_zeros() as usize;
                return Err(self.stop(StopKind::Trap, "trap", block, thread, instruction));
            }
            Operation::Fence => {
                self.clock += 1;
                block.fenced = self.clock;
                warp.advance(group);
            }
            _ => {
                self.compute(block, warp, active, instruction)?;
                warp.advance(group);
            }
        }
        Ok(())
    }

    /// Everything that lanes do on their own.
    fn compute(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        active: u32,
        instruction: &Instruction,
    ) -> Result<(), Stop> {
        let place = self.place(block);
        match &instruction.op {
            Operation::Unary { f, d, a } => {
                let row = f(&warp.source(*a, &place));
                warp.put(*d, &row, active);
            }
            Operation::Binary { f, d, a, b } => {
                let row = f(&warp.source(*a, &place), &warp.source(*b, &place));
                warp.put(*d, &row, active);
            }
            Operation::Ternary { f, d, a, b, c } => {
                let row = f(&warp.source(*a, &place), &warp.source(*b, &place), &warp.source(*c, &place));
                warp.put(*d, &row, active);
            }
            Operation::Quaternary { f, d, sources } => {
                let [a, b, c, e] = sources.map(|source| warp.source(source, &place));
                warp.put(*d, &f(&a, &b, &c, &e), active);
            }
            Operation::Convert { conversion, d, a } => {
                let row = warp.source(*a, &place).map(|bits| conversion.apply(bits));
                warp.put(*d, &row, active);
            }
            Operation::Logic { d, a, b, c, table } => {
                let rows = [*a, *b, *c].map(|source| warp.source(source, &place));
                let row = logic(rows.each_ref().map(|row| &**row), *table);
                warp.put(*d, &row, active);
            }
            Operation::Set { f, d, a, b, values } => {
                let holds = f(&warp.source(*a, &place), &warp.source(*b, &place));
                warp.put(*d, &holds.map(|bit| values[bit as usize]), active);
            }
            Operation::SetPredicate { f, a, b, combine, d, complement } => {
                let holds = f(&warp.source(*a, &place), &warp.source(*b, &place));
                let other = combine.map(|(kind, operand)| (kind, warp.source(operand, &place)));
                let combined = |holds: &Row| -> Row {
                    match &other {
                        None => *holds,
                        Some((Combine::And, c)) => std::array::from_fn(|lane| holds[lane] & c[lane] & 1),
                        Some((Combine::Or, c)) => std::array::from_fn(|lane| holds[lane] | c[lane] & 1),
                        Some((Combine::Xor, c)) => std::array::from_fn(|lane| holds[lane] ^ c[lane] & 1),
                    }
                };
                let row = combined(&holds);
                let inverse = (*complement != DISCARD).then(|| combined(&holds.map(|bit| bit ^ 1)));
                warp.put(*d, &row, active);
                if let Some(inverse) = inverse {
                    warp.put(*complement, &inverse, active);
                }
            }
            Operation::Pack { d, sources, bits } => {
                let mut row = [0; LANES];
                for (index, source) in sources.iter().enumerate() {
                    for (out, part) in row.iter_mut().zip(*warp.source(*source, &place)) {
                        *out |= (part & low_bits(*bits)) << (index as u32 * bits);
                    }
                }
                warp.put(*d, &row, active);
            }
            Operation::Unpack { d, a, bits } => {
                let row = warp.row(*a, &place);
                for (index, register) in d.iter().enumerate() {
                    let part = row.map(|value| value >> (index as u32 * bits) & low_bits(*bits));
                    warp.put(*register, &part, active);
                }
            }
            Operation::ActiveMask { d } => warp.put(*d, &[u64::from(active); LANES], active),
            _ => return self.memory_operation(block, warp, active, instruction),
        }
        Ok(())
    }

    /// `bar.sync`, `bar.arrive` and `bar.red`.
    fn barrier(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        group: usize,
        active: u32,
        instruction: &Instruction,
    ) -> Result<(), Stop> {
        let first = active.trailing_zeros() as usize;
        let place = self.place(block);
        let value = |operand: Operand| warp.row(operand, &place)[first] as usize;
        let (id, expected, arrive_only) = match &instruction.op {
            Operation::Barrier { id, threads, arrive_only } => {
                (value(*id), threads.map_or(block.threads, value), *arrive_only)
            }
            Operation::BarrierReduce { id, .. } => (value(*id), block.threads, false),
            _ => return Ok(()),
        };
        let pc = warp.groups[group].pc;
        let elsewhere =
            |other: &crate::exec::warp::Group| matches!(other.state, State::Barrier { .. }) && other.pc != pc;
        if id >= 16 || warp.groups.iter().any(elsewhere) {
            let what = "divergent barrier: lanes of one warp wait at different barriers";
            return Err(self.stop(StopKind::Divergence, what, block, warp.index * LANES + first, instruction));
        }
        block.barriers.arrive(&Arrival { id, expected, lanes: active, warp, clock: self.clock });
        if let Operation::BarrierReduce { mode, count, d, a, .. } = &instruction.op {
            let row = warp.row(*a, &place);
            let true_lanes =
                super::lanes(active).filter(|lane| row[*lane] & 1 != 0).fold(0, |mask, lane| mask | 1 << lane);
            let reduction = match (count, mode) {
                (true, _) => Reduction::Count,
                (false, VoteMode::All) => Reduction::All,
                (false, _) => Reduction::Any,
            };
            block.barriers.reduce(id, true_lanes, active, *d, reduction);
        }
        // Accesses after an arrival are later than those that it orders.
        self.clock += 1;
        if arrive_only {
            warp.advance(group);
        } else {
            warp.stop(group, active, State::Barrier { id });
        }
        Ok(())
    }
}

fn low_bits(bits: u32) -> u64 {
    1u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
}

/// Bit `4a + 2b + c` of the table for each bit position.
fn logic(rows: [&Row; 3], table: u8) -> Row {
    let mut out = [0; LANES];
    for index in (0..8).filter(|index| table >> index & 1 == 1) {
        // All ones where the bit has to be clear: an exclusive or makes it set.
        let [a, b, c] = [2, 1, 0].map(|bit| if index >> bit & 1 == 1 { 0 } else { u64::MAX });
        for (lane, out) in out.iter_mut().enumerate() {
            *out |= (rows[0][lane] ^ a) & (rows[1][lane] ^ b) & (rows[2][lane] ^ c);
        }
    }
    out
}
