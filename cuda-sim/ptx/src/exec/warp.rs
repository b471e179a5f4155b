//! A warp: registers, and where its lanes are.
//!
//! Lanes that are at the same instruction form a group. Groups split at branches and join again when they meet; the group
//! with the lowest program counter runs first, which makes lanes meet again at the end of a branch or a loop.

use crate::exec::copies::AsyncCopies;
use crate::instruction::{DISCARD, Reg};
use crate::memory::initialised::Initialised;
use crate::row::{LANES, Row};

/// Next action of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Waits at a warp operation until the lanes of this mask are there.
    Waiting {
        need: u32,
    },
    /// Waits at a barrier of the block.
    Barrier {
        id: usize,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) pc: usize,
    pub(crate) lanes: u32,
    pub(crate) state: State,
}

#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) index: usize,
    pub(crate) registers: Registers,
    pub(crate) groups: Vec<Group>,
    /// Mask of lanes that are still running.
    pub(crate) alive: u32,
    /// Clock for each warp of the block: accesses before it are ordered before this warp.
    pub(crate) seen: Vec<u32>,
    pub(crate) copies: AsyncCopies,
    /// Local memory: the lanes one after the other, and which bytes are written.
    pub(crate) local: Vec<u8>,
    pub(crate) local_written: Initialised,
}

#[derive(Debug)]
pub(crate) struct Registers(Vec<Row>);

impl Registers {
    /// Writes the lanes of a mask.
    #[inline]
    pub(crate) fn put(&mut self, register: Reg, row: &Row, mask: u32) {
        if register == DISCARD {
            return;
        }
        let target = &mut self.0[register as usize];
        if mask == u32::MAX {
            *target = *row;
        } else {
            for lane in super::lanes(mask) {
                target[lane] = row[lane];
            }
        }
    }

    #[inline]
    pub(crate) fn put_lane(&mut self, register: Reg, lane: usize, value: u64) {
        if register != DISCARD {
            self.0[register as usize][lane] = value;
        }
    }
}

impl Warp {
    /// Warp `index` of a block of `threads` threads, before its first instruction.
    pub(crate) fn new(index: usize, threads: usize, registers: usize, local: usize) -> Self {
        let count = (threads - index * LANES).min(LANES);
        let alive = if count == LANES { u32::MAX } else { (1 << count) - 1 };
        Self {
            index,
            registers: Registers(vec![[0; LANES]; registers]),
            groups: vec![Group { pc: 0, lanes: alive, state: State::Ready }],
            alive,
            seen: vec![0; threads.div_ceil(LANES)],
            copies: AsyncCopies::default(),
            local: vec![0; local * LANES],
            local_written: Initialised::new(local * LANES),
        }
    }

    /// The ready group with the lowest program counter.
    #[inline]
    pub(crate) fn ready(&self) -> Option<usize> {
        if let [group] = &self.groups[..] {
            return (group.state == State::Ready).then_some(0);
        }
        let ready = self.groups.iter().enumerate().filter(|(_, group)| group.state == State::Ready);
        ready.min_by_key(|(_, group)| group.pc).map(|(index, _)| index)
    }

    #[inline]
    pub(crate) fn register(&self, register: Reg) -> &Row {
        &self.registers.0[register as usize]
    }

    /// Writes the lanes of a mask.
    #[inline]
    pub(crate) fn put(&mut self, register: Reg, row: &Row, mask: u32) {
        self.registers.put(register, row, mask);
    }

    #[inline]
    pub(crate) fn put_lane(&mut self, register: Reg, lane: usize, value: u64) {
        self.registers.put_lane(register, lane, value);
    }

    /// Moves the lanes of group `index` that `taken` names to `target`, the others to the next instruction.
    pub(crate) fn branch(&mut self, index: usize, taken: u32, target: usize) {
        let group = self.groups[index];
        let others = group.lanes & !taken;
        if others == 0 {
            self.groups[index].pc = target;
        } else if taken == 0 {
            self.groups[index].pc += 1;
        } else {
            self.groups[index] = Group { pc: group.pc + 1, lanes: others, state: State::Ready };
            self.groups.push(Group { pc: target, lanes: taken, state: State::Ready });
        }
        self.join();
    }

    /// Ends lanes; the group's others go on.
    pub(crate) fn exit(&mut self, index: usize, exiting: u32) {
        self.alive &= !exiting;
        self.groups[index].lanes &= !exiting;
        self.groups[index].pc += 1;
        self.groups.retain(|group| group.lanes != 0);
        self.join();
    }

    /// Splits lanes off that stop at the current instruction; the others go on. Gives the index of what stopped.
    pub(crate) fn stop(&mut self, index: usize, stopping: u32, state: State) -> usize {
        let pc = self.groups[index].pc;
        let others = self.groups[index].lanes & !stopping;
        self.groups[index] = Group { pc, lanes: stopping, state };
        if others != 0 {
            self.groups.push(Group { pc: pc + 1, lanes: others, state: State::Ready });
        }
        self.join();
        let here = self.groups.iter().position(|group| group.pc == pc && group.lanes & stopping != 0);
        here.unwrap_or(index)
    }

    /// Advances group `index` past its instruction.
    pub(crate) fn advance(&mut self, index: usize) {
        self.groups[index].pc += 1;
        self.groups[index].state = State::Ready;
        if self.groups.len() > 1 {
            self.join();
        }
    }

    /// Joins groups that are at the same place for the same reason.
    fn join(&mut self) {
        let mut index = 0;
        while index < self.groups.len() {
            let group = self.groups[index];
            let same = |other: &Group| other.pc == group.pc && other.state == group.state;
            match self.groups[index + 1..].iter().position(same) {
                Some(found) => {
                    let other = self.groups.swap_remove(index + 1 + found);
                    self.groups[index].lanes |= other.lanes;
                }
                None => index += 1,
            }
        }
    }
}
