//! A launch, and what its blocks share while it runs.

use crate::counters::Counters;
use crate::memory::shadow::Publications;
use crate::memory::{Memory, Op};
use crate::module::Kernel;
use crate::random::Random;

/// Sizes along x, y and z.
pub type Dim = [u32; 3];

/// Parameters of a `cuLaunchKernel` call.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// A kernel from [`Module::kernel`](crate::Module::kernel).
    pub kernel: &'a Kernel,
    /// Number of blocks in each dimension.
    pub grid: Dim,
    /// Number of threads of a block in each dimension.
    pub block: Dim,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: usize,
    /// The parameters, laid out by [`Kernel::params`].
    pub params: &'a [u8],
    /// Chooses the order of blocks and warps.
    pub seed: u64,
    /// Instructions of warps after which a launch counts as endless.
    pub step_limit: u64,
}

impl<'a> Launch<'a> {
    /// A launch of `blocks` blocks of `threads` threads, in one dimension.
    #[must_use]
    pub fn new(kernel: &'a Kernel, blocks: u32, threads: u32, params: &'a [u8]) -> Self {
        let (grid, block) = ([blocks, 1, 1], [threads, 1, 1]);
        Self { kernel, grid, block, dynamic_shared: 0, params, seed: 0, step_limit: 1 << 34 }
    }
}

/// Everything of a launch that its blocks share.
pub(crate) struct Machine<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) memory: &'a mut Memory,
    pub(crate) op: Op,
    pub(crate) counters: Counters,
    pub(crate) random: Random,
    /// Advances at every barrier, fence and publication; accesses are dated by it.
    pub(crate) clock: u32,
    pub(crate) publications: Publications,
}
