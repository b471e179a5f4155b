//! Operations that the lanes of a warp do together: they wait until all lanes of the instruction's mask are there.

use crate::exec::block::BlockState;
use crate::exec::lanes;
use crate::exec::machine::Machine;
use crate::exec::warp::{State, Warp};
use crate::instruction::{Instruction, Operand, Operation, ShuffleMode, VoteMode};
use crate::row::{LANES, Row};
use crate::stop::{Stop, StopKind};

impl Operation {
    /// Whether lanes wait for each other.
    pub(crate) fn is_collective(&self) -> bool {
        self.is_matrix() || self.mask().is_some()
    }

    fn is_matrix(&self) -> bool {
        matches!(self, Self::LoadMatrix { .. } | Self::Mma { .. })
    }

    /// The operand that names the lanes.
    fn mask(&self) -> Option<Operand> {
        match self {
            Self::WarpBarrier { mask }
            | Self::Shuffle { mask, .. }
            | Self::Vote { mask, .. }
            | Self::MatchAny { mask, .. }
            | Self::MatchAll { mask, .. }
            | Self::Reduce { mask, .. } => Some(*mask),
            _ => None,
        }
    }
}

impl Machine<'_> {
    /// Stops the active lanes, and runs the instruction once all are there.
    pub(crate) fn collective(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        group: usize,
        active: u32,
        at: &Instruction,
    ) -> Result<(), Stop> {
        let first = active.trailing_zeros() as usize;
        let masks = match at.op.mask() {
            Some(operand) => warp.row(operand, &self.place(block)),
            None => [u64::from(u32::MAX); LANES],
        };
        let mask = masks[first] as u32;
        // Lanes with another mask form another group; it runs this instruction later.
        let together = lanes(active).filter(|lane| masks[*lane] as u32 == mask).fold(0, |all, lane| all | 1 << lane);
        if together & mask != together {
            let lane = (together & !mask).trailing_zeros() as usize;
            let what = format!("divergent operation: the mask {mask:#010x} lacks the lane that executes it,");
            return Err(self.stop(StopKind::Divergence, &what, block, warp.index * LANES + lane, at));
        }
        let others = active & !together;
        let need = mask & warp.alive;
        if at.op.is_matrix() && warp.alive != u32::MAX {
            let what = format!("divergent operation: a matrix instruction with only lanes {:#010x}", warp.alive);
            return Err(self.stop(StopKind::Divergence, &what, block, warp.index * LANES + first, at));
        }
        let index = if together == need && warp.groups[group].lanes == together {
            group
        } else {
            let pc = warp.groups[group].pc;
            let index = warp.stop(group, together, State::Waiting { need: mask });
            if others != 0 {
                self.requeue(warp, pc, others);
            }
            index
        };
        if warp.groups[index].lanes & need != need {
            return Ok(());
        }
        self.together(block, warp, need, at)?;
        warp.advance(index);
        Ok(())
    }

    /// Puts lanes back to an instruction that they stand before.
    fn requeue(&self, warp: &mut Warp, pc: usize, back: u32) {
        for group in &mut warp.groups {
            if group.pc == pc + 1 && group.lanes & back != 0 {
                group.lanes &= !back;
            }
        }
        warp.groups.retain(|group| group.lanes != 0);
        warp.groups.push(crate::exec::warp::Group { pc, lanes: back, state: State::Ready });
    }

    fn together(&mut self, block: &mut BlockState, warp: &mut Warp, mask: u32, at: &Instruction) -> Result<(), Stop> {
        let place = self.place(block);
        match &at.op {
            Operation::WarpBarrier { .. } => {
                self.clock += 1;
                // Only a barrier of all lanes orders accesses here; of a part, it is taken for one of all.
                warp.seen[warp.index] = self.clock;
            }
            Operation::Shuffle { mode, d, valid, a, b, clamp, .. } => {
                let [value, b, clamp] = [*a, *b, *clamp].map(|operand| warp.row(operand, &place));
                let (mut out, mut inside) = ([0; LANES], [0; LANES]);
                for lane in lanes(mask) {
                    let (source, valid) = shuffle_source(*mode, lane, b[lane], clamp[lane]);
                    if mask >> source & 1 == 0 {
                        let what =
                            format!("divergent operation: the shuffle reads lane {source}, which does not take part,");
                        return Err(self.stop(StopKind::Divergence, &what, block, warp.index * LANES + lane, at));
                    }
                    out[lane] = value[source] & 0xffff_ffff;
                    inside[lane] = u64::from(valid);
                }
                warp.put(*d, &out, mask);
                warp.put(*valid, &inside, mask);
            }
            Operation::Vote { mode, d, a, .. } => {
                let row = warp.row(*a, &place);
                let ballot = lanes(mask).filter(|lane| row[*lane] & 1 != 0).fold(0u32, |all, lane| all | 1 << lane);
                let result = match mode {
                    VoteMode::All => u64::from(ballot == mask),
                    VoteMode::Any => u64::from(ballot != 0),
                    VoteMode::Uniform => u64::from(ballot == mask || ballot == 0),
                    VoteMode::Ballot => u64::from(ballot),
                };
                warp.put(*d, &[result; LANES], mask);
            }
            Operation::MatchAny { size, d, a, .. } => {
                let row = low_bytes(&warp.row(*a, &place), *size);
                let equal = |lane: usize| lanes(mask).filter(move |other| row[*other] == row[lane]);
                let out = std::array::from_fn(|lane| equal(lane).fold(0u64, |all, other| all | 1 << other));
                warp.put(*d, &out, mask);
            }
            Operation::MatchAll { size, d, valid, a, .. } => {
                let row = low_bytes(&warp.row(*a, &place), *size);
                let first = row[mask.trailing_zeros() as usize];
                let all = lanes(mask).all(|lane| row[lane] == first);
                warp.put(*d, &[if all { u64::from(mask) } else { 0 }; LANES], mask);
                warp.put(*valid, &[u64::from(all); LANES], mask);
            }
            Operation::Reduce { f, d, a, .. } => {
                let row = warp.row(*a, &place);
                let result = lanes(mask).map(|lane| row[lane]).reduce(f).unwrap_or(0);
                warp.put(*d, &[result; LANES], mask);
            }
            _ => return self.matrix(block, warp, at),
        }
        Ok(())
    }
}

fn low_bytes(row: &Row, size: usize) -> Row {
    row.map(|bits| if size == 4 { bits & 0xffff_ffff } else { bits })
}

/// The lane that a shuffle reads, and whether it lies inside the segment.
fn shuffle_source(mode: ShuffleMode, lane: usize, b: u64, clamp: u64) -> (usize, bool) {
    let (lane, b) = (lane as i64, (b & 31) as i64);
    let (segment, clamp) = ((clamp >> 8 & 31) as i64, (clamp & 31) as i64);
    let most = lane & segment | clamp & !segment;
    let least = lane & segment;
    let (source, valid) = match mode {
        ShuffleMode::Up => (lane - b, lane - b >= most),
        ShuffleMode::Down => (lane + b, lane + b <= most),
        ShuffleMode::Butterfly => (lane ^ b, lane ^ b <= most),
        ShuffleMode::Index => {
            let source = least | b & !segment;
            (source, source <= most)
        }
    };
    (if valid { source } else { lane } as usize, valid)
}
