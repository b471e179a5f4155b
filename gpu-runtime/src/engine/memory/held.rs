//! The memory that an engine uses, and the memory that remains for keys and values.

use trainyard_protocol::MemoryUse;

use super::bytes;
use crate::backend::Backend;
use crate::engine::Engine;

impl<B: Backend> Engine<B> {
    /// Limits keys and values to what runs leave, `incoming` bytes for another one included.
    pub(in crate::engine) fn limit_kv(&mut self, incoming: u64) {
        let runs: u64 = self.runs.values().map(|run| run.planned.bytes).sum();
        let checkpoints = bytes(self.checkpoints.bytes()).saturating_sub(self.budget.plan.checkpoints);
        let held = runs + bytes(self.snapshots.bytes()) + checkpoints;
        self.sampler.set_kv_limit(self.budget.kv_limit(held.saturating_add(incoming)));
        self.bases.iter().for_each(|base| base.model.reclaim_kv(&*self.backend));
    }

    /// Bytes that are held now.
    pub(in crate::engine) fn memory_use(&self, kv: u64) -> MemoryUse {
        let runs = self.runs.values().map(|run| run.bytes(&*self.backend)).sum::<usize>();
        let buffers = self.backend.buffer_bytes();
        MemoryUse {
            weights: self.budget.plan.weights,
            runs: bytes(runs + self.trainer.gradient_bytes(&self.runs)),
            snapshots: bytes(self.snapshots.bytes()),
            checkpoints: bytes(self.checkpoints.bytes()),
            kv,
            activations: bytes(buffers.used + buffers.unused),
        }
    }
}
