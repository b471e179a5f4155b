//! The sixteen barriers of a block.

use crate::exec::warp::{State, Warp};
use crate::instruction::Reg;

#[derive(Debug, Default)]
pub(crate) struct Barriers {
    slots: [Slot; 16],
    /// Whether somebody arrived since [`Self::complete`] was asked.
    arrived: bool,
}

#[derive(Debug, Default)]
struct Slot {
    arrived: usize,
    expected: usize,
    /// The launch's clock for each warp: accesses before it are ordered before every thread that leaves the barrier.
    seen: Vec<u32>,
    /// The operand of a reduction, of all threads so far.
    counted: u32,
    all: bool,
    /// Destination of a reduction's result.
    result: Option<(Reg, Reduction)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    Count,
    All,
    Any,
}

/// Lanes of a warp that arrive at a barrier.
pub(crate) struct Arrival<'a> {
    pub(crate) id: usize,
    pub(crate) expected: usize,
    pub(crate) lanes: u32,
    pub(crate) warp: &'a Warp,
    pub(crate) clock: u32,
}

impl Barriers {
    pub(crate) fn arrive(&mut self, arrival: &Arrival<'_>) {
        self.arrived = true;
        let slot = &mut self.slots[arrival.id];
        if slot.arrived == 0 {
            slot.seen = vec![0; arrival.warp.seen.len()];
            (slot.counted, slot.all, slot.result) = (0, true, None);
        }
        slot.arrived += arrival.lanes.count_ones() as usize;
        slot.expected = arrival.expected;
        for (joined, seen) in slot.seen.iter_mut().zip(&arrival.warp.seen) {
            *joined = (*joined).max(*seen);
        }
        let own = &mut slot.seen[arrival.warp.index];
        *own = (*own).max(arrival.clock + 1);
    }

    /// Adds the operands of a reduction; call it after `arrive`.
    pub(crate) fn reduce(&mut self, id: usize, true_lanes: u32, lanes: u32, d: Reg, reduction: Reduction) {
        let slot = &mut self.slots[id];
        slot.counted += (true_lanes & lanes).count_ones();
        slot.all &= true_lanes & lanes == lanes;
        slot.result = Some((d, reduction));
    }

    /// A barrier at which everybody arrived.
    #[inline]
    pub(crate) fn complete(&mut self) -> Option<usize> {
        if !std::mem::take(&mut self.arrived) {
            return None;
        }
        self.slots.iter().position(|slot| slot.arrived > 0 && slot.arrived >= slot.expected)
    }

    /// Lets the waiting warps go on; the clock advances.
    pub(crate) fn release(&mut self, id: usize, warps: &mut [Warp], clock: &mut u32) {
        *clock += 1;
        let slot = std::mem::take(&mut self.slots[id]);
        for warp in warps {
            let Some(index) = warp.groups.iter().position(|group| group.state == State::Barrier { id }) else {
                continue;
            };
            for (seen, joined) in warp.seen.iter_mut().zip(&slot.seen) {
                *seen = (*seen).max(*joined);
            }
            if let Some((register, reduction)) = slot.result {
                let value = match reduction {
                    Reduction::Count => u64::from(slot.counted),
                    Reduction::All => u64::from(slot.all),
                    Reduction::Any => u64::from(slot.counted > 0),
                };
                warp.put(register, &[value; 32], warp.groups[index].lanes);
            }
            warp.advance(index);
        }
    }
}
