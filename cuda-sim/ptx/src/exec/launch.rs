//! A launch: which blocks run when.

use crate::counters::Counters;
use crate::exec::block::{Block, Progress};
use crate::exec::machine::{Launch, Machine};
use crate::memory::shadow::Publications;
use crate::memory::shared::SharedMemory;
use crate::memory::{Memory, Op};
use crate::random::Random;
use crate::row::LANES;
use crate::stop::{Stop, StopKind};

/// Blocks that run at the same time.
const RESIDENT: usize = 4;

/// The most shared memory of a block, static and dynamic: that of sm_80.
const MOST_SHARED: usize = 163 << 10;

/// Runs a kernel to its end.
///
/// # Errors
///
/// [`Stop`] at the first access or operation that a GPU does not promise a result for.
pub fn launch(launch: &Launch<'_>, memory: &mut Memory, op: &Op) -> Result<Counters, Stop> {
    check(launch)?;
    let mut op = op.clone();
    if op.id == 0 {
        op.id = memory.begin(launch.kernel.name());
    }
    let mut machine = Machine {
        launch,
        memory,
        op,
        counters: Counters { launches: 1, ..Counters::default() },
        random: Random::new(launch.seed),
        clock: 1,
        publications: Publications::default(),
    };
    machine.run()?;
    Ok(machine.counters)
}

fn check(launch: &Launch<'_>) -> Result<(), Stop> {
    let kernel = launch.kernel;
    let threads = launch.block.iter().map(|n| *n as usize).product::<usize>();
    let bad = |message: String| Err(Stop::new(StopKind::BadLaunch, format!("{}: {message}", kernel.name())));
    if threads == 0 || launch.grid.contains(&0) {
        return bad("a launch without threads".to_owned());
    }
    if threads > kernel.max_threads {
        return bad(format!("{threads} threads in a block, at most {} are allowed", kernel.max_threads));
    }
    if kernel.shared + launch.dynamic_shared > MOST_SHARED {
        return bad(format!("{} bytes of shared memory", kernel.shared + launch.dynamic_shared));
    }
    if launch.params.len() < kernel.param_bytes() {
        return bad(format!("{} bytes of parameters, {} are needed", launch.params.len(), kernel.param_bytes()));
    }
    Ok(())
}

impl Machine<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        let kernel = self.launch.kernel;
        let total = self.launch.grid.iter().map(|n| u64::from(*n)).product::<u64>();
        // Blocks start in a random order: a permutation of windows would be visible only to kernels that are wrong.
        let mut waiting: Vec<u32> = (0..total as u32).collect();
        for index in (1..waiting.len()).rev() {
            waiting.swap(index, self.random.below(index + 1));
        }
        let mut resident: Vec<Block> = Vec::new();
        while !waiting.is_empty() || !resident.is_empty() {
            while resident.len() < RESIDENT {
                let Some(index) = waiting.pop() else { break };
                let mut shared = self.memory.spare_shared.pop().unwrap_or_else(SharedMemory::new);
                shared.reuse(kernel.shared + self.launch.dynamic_shared);
                resident.push(self.block(index, shared));
            }
            let chosen = self.random.below(resident.len());
            let block = &mut resident[chosen];
            if block.advance(self)? == Progress::Finished {
                let shared = resident.swap_remove(chosen).into_shared();
                self.memory.spare_shared.push(shared);
            }
            if self.counters.instructions > self.launch.step_limit {
                let message = format!("{}: {} instructions and no end", kernel.name(), self.counters.instructions);
                return Err(Stop::new(StopKind::StepLimit, message));
            }
        }
        Ok(())
    }

    fn block(&self, index: u32, shared: SharedMemory) -> Block {
        let [x, y, _] = self.launch.grid;
        let id = [index % x, index / x % y, index / x / y];
        let threads = self.launch.block.iter().map(|n| *n as usize).product::<usize>();
        Block::new(index, id, threads, threads.div_ceil(LANES), self.launch.kernel, shared)
    }
}
