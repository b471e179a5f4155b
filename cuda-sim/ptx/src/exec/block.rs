//! A block: its warps, its shared memory, its barriers.

use crate::exec::barrier::Barriers;
use crate::exec::machine::{Dim, Machine};
use crate::exec::warp::{State, Warp};
use crate::instruction::Instruction;
use crate::memory::shared::SharedMemory;
use crate::module::Kernel;
use crate::row::LANES;
use crate::stop::{Stop, StopKind};

/// Instructions that a warp runs before another one may be chosen, at most.
const BURST: usize = 48;

/// Position in the grid that instructions can read.
pub(crate) struct Place<'a> {
    pub(crate) block_dim: Dim,
    pub(crate) grid_dim: Dim,
    pub(crate) block: Dim,
    pub(crate) variables: &'a [u64],
    pub(crate) static_shared: usize,
    pub(crate) clock: u64,
}

/// A block without its warps: what their instructions share.
#[derive(Debug)]
pub(crate) struct BlockState {
    /// The block's number in the grid.
    pub(crate) index: u32,
    pub(crate) id: Dim,
    pub(crate) threads: usize,
    pub(crate) shared: SharedMemory,
    pub(crate) barriers: Barriers,
    /// The launch's clock at the last fence.
    pub(crate) fenced: u32,
    /// The launch's clock at the last atomic that may have read another block's publication.
    pub(crate) acquired: u32,
}

#[derive(Debug)]
pub(crate) struct Block {
    warps: Vec<Warp>,
    state: BlockState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Running,
    Finished,
}

impl Block {
    pub(crate) fn new(
        index: u32,
        id: Dim,
        threads: usize,
        warps: usize,
        kernel: &Kernel,
        shared: SharedMemory,
    ) -> Self {
        let warp = |index| Warp::new(index, threads, kernel.registers, kernel.local);
        let state = BlockState { index, id, threads, shared, barriers: Barriers::default(), fenced: 0, acquired: 0 };
        Self { warps: (0..warps).map(warp).collect(), state }
    }

    pub(crate) fn into_shared(self) -> SharedMemory {
        self.state.shared
    }

    /// Runs one warp, chosen at random, for a while.
    pub(crate) fn advance(&mut self, machine: &mut Machine<'_>) -> Result<Progress, Stop> {
        let is_ready = |warp: &&Warp| warp.ready().is_some();
        let ready = self.warps.iter().filter(is_ready).count();
        if ready == 0 {
            if self.warps.iter().all(|warp| warp.alive == 0) {
                return Ok(Progress::Finished);
            }
            return Err(self.stuck(machine));
        }
        let nth = machine.random.below(ready);
        let chosen = self.warps.iter().filter(is_ready).nth(nth).map_or(0, |warp| warp.index);
        let burst = 1 + machine.random.below(BURST);
        for _ in 0..burst {
            let warp = &mut self.warps[chosen];
            let Some(group) = warp.ready() else { break };
            machine.step(&mut self.state, warp, group)?;
            if let Some(id) = self.state.barriers.complete() {
                self.state.barriers.release(id, &mut self.warps, &mut machine.clock);
                machine.counters.barriers += 1;
            }
        }
        Ok(Progress::Running)
    }

    /// Nobody can go on: which threads wait for which.
    fn stuck(&self, machine: &Machine<'_>) -> Stop {
        let code = &machine.launch.kernel.code;
        let mut waits = Vec::new();
        let mut exited = 0;
        for warp in &self.warps {
            exited +=
                self.state.threads.saturating_sub(warp.index * LANES).min(LANES) - warp.alive.count_ones() as usize;
            for group in &warp.groups {
                let Instruction { line, text, .. } = &code[group.pc];
                let (warp, lanes) = (warp.index, group.lanes);
                waits.push(match group.state {
                    State::Waiting { need } => {
                        format!(
                            "warp {warp} lanes {lanes:#010x} wait for lanes {need:#010x} at PTX line {line}: {text}"
                        )
                    }
                    _ => format!("warp {warp} lanes {lanes:#010x} wait at PTX line {line}: {text}"),
                });
            }
        }
        waits.truncate(8);
        let message = format!(
            "divergent operation in {} block {:?}: {exited} of {} threads have exited; {}",
            machine.launch.kernel.name(),
            self.state.id,
            self.state.threads,
            waits.join("; ")
        );
        Stop::new(StopKind::Divergence, message)
    }
}

impl Machine<'_> {
    pub(crate) fn place(&self, block: &BlockState) -> Place<'_> {
        Place {
            block_dim: self.launch.block,
            grid_dim: self.launch.grid,
            block: block.id,
            variables: &self.launch.kernel.variables,
            static_shared: self.launch.kernel.shared,
            clock: self.counters.instructions,
        }
    }

    /// A stop at an instruction of one thread.
    pub(crate) fn stop(
        &self,
        kind: StopKind,
        what: &str,
        block: &BlockState,
        thread: usize,
        instruction: &Instruction,
    ) -> Stop {
        let message = format!(
            "{what} in {} block {:?} thread {thread}, PTX line {}: {}",
            self.launch.kernel.name(),
            block.id,
            instruction.line,
            instruction.text
        );
        Stop::new(kind, message)
    }
}
