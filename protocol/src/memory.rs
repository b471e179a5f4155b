//! The memory budget of an engine: how it is divided, and what a run takes of it.

use crate::RunSpec;

/// What a run takes of an engine's memory, in bytes: an upper bound that is known before the run is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMemory {
    /// Parameters, optimizer states, gradients and the weights that its passes read.
    pub bytes: u64,
    /// Each of its snapshots for sampling that is in memory.
    pub snapshot_bytes: u64,
}

/// How an engine divides its budget, in bytes. The parts are upper bounds but for `kv`, which gets what runs leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// All parts together; `None` is no limit.
    pub budget: Option<u64>,
    /// Base models.
    pub weights: u64,
    /// A training pass.
    pub activations: u64,
    /// Checkpoints that are sampled from.
    pub checkpoints: u64,
    /// Keys and values, at least.
    pub kv: u64,
}

impl MemoryPlan {
    /// What is left for runs and their snapshots.
    pub fn runs(&self) -> u64 {
        let others = [self.weights, self.activations, self.checkpoints, self.kv];
        let left = |budget| others.into_iter().fold(budget, u64::saturating_sub);
        self.budget.map_or(u64::MAX, left)
    }
}

/// What an engine holds, in bytes, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Base models.
    pub weights: u64,
    /// Parameters, optimizer states and gradients of runs, and the weights that their passes read.
    pub runs: u64,
    /// Snapshots of runs for sampling, where they do not share a run's memory.
    pub snapshots: u64,
    /// Checkpoints that are sampled from.
    pub checkpoints: u64,
    /// Keys and values.
    pub kv: u64,
    /// Buffers of passes, in use or retained for the next one.
    pub activations: u64,
}

impl MemoryUse {
    /// Names and bytes of all kinds.
    pub fn kinds(&self) -> [(&'static str, u64); 6] {
        let Self { weights, runs, snapshots, checkpoints, kv, activations } = *self;
        [
            ("weights", weights),
            ("runs", runs),
            ("snapshots", snapshots),
            ("checkpoints", checkpoints),
            ("kv", kv),
            ("activations", activations),
        ]
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Predicts what runs take of an engine's memory, on any thread.
pub trait PlanMemory: Send + Sync {
    /// How the budget is divided.
    fn plan(&self) -> MemoryPlan;

    /// What a run takes; `None` when its base model is not served.
    fn run(&self, spec: &RunSpec) -> Option<RunMemory>;
}

/// The plan of an engine without a budget.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbounded;

impl PlanMemory for Unbounded {
    fn plan(&self) -> MemoryPlan {
        MemoryPlan::default()
    }

    fn run(&self, _spec: &RunSpec) -> Option<RunMemory> {
        Some(RunMemory::default())
    }
}
