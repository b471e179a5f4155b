//! The memory budget of an engine: its division, and the memory that a run takes.

use crate::RunSpec;

/// Memory that a run takes, in bytes: an upper bound that is known before the run is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMemory {
    /// Bytes of parameters, optimizer states, gradients and the weights that its passes read.
    pub bytes: u64,
    /// Bytes of each of its snapshots for sampling that is in memory.
    pub snapshot_bytes: u64,
}

/// Division of an engine's budget, in bytes. The parts are upper bounds except `kv`, which gets what runs leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Total of all parts; `None` means unlimited.
    pub budget: Option<u64>,
    /// Bytes of the base models.
    pub weights: u64,
    /// Bytes of a training pass.
    pub activations: u64,
    /// Bytes of the checkpoints that are sampled from.
    pub checkpoints: u64,
    /// Smallest number of bytes for keys and values.
    pub kv: u64,
}

impl MemoryPlan {
    /// Returns the bytes that are left for runs and their snapshots.
    pub fn runs(&self) -> u64 {
        let others = [self.weights, self.activations, self.checkpoints, self.kv];
        let left = |budget| others.into_iter().fold(budget, u64::saturating_sub);
        self.budget.map_or(u64::MAX, left)
    }
}

/// Memory in use by an engine, in bytes, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of the base models.
    pub weights: u64,
    /// Bytes of parameters, optimizer states and gradients of runs, and of the weights that their passes read.
    pub runs: u64,
    /// Bytes of snapshots of runs for sampling that do not share a run's memory.
    pub snapshots: u64,
    /// Bytes of the checkpoints that are sampled from.
    pub checkpoints: u64,
    /// Bytes of keys and values.
    pub kv: u64,
    /// Bytes of the buffers of passes, in use or retained for the next one.
    pub activations: u64,
}

impl MemoryUse {
    /// Returns the names and bytes of all kinds.
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

    /// Returns the bytes of all kinds together.
    pub fn total(&self) -> u64 {
        self.kinds().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Predicts the memory that runs take, on any thread.
pub trait PlanMemory: Send + Sync {
    /// Returns the division of the budget.
    fn plan(&self) -> MemoryPlan;

    /// Returns the memory that a run takes, or `None` if its base model is not served.
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
