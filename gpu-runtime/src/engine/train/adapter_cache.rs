//! Packed adapters of runs: which of them stay packed, and whose memory is recycled.

use std::collections::BTreeMap;

use trainyard_protocol::RunId;

use crate::backend::Backend;
use crate::engine::run::{RecycledAdapter, TrainingRun};

/// Limit in bytes of all packed adapters, including those of runs without requests.
const PACKED_BYTES: usize = 64 << 20;

/// Bounds the memory of packed adapters. Those of the runs in a pass are always packed; others are evicted while the
/// total exceeds the limit.
pub(super) struct AdapterCache<B: Backend> {
    /// An evicted adapter, whose memory the next one of its shape is packed into.
    pub(super) recycled: Option<RecycledAdapter<B>>,
    /// Limit of packed adapters, in bytes.
    pub(super) limit: usize,
}

impl<B: Backend> AdapterCache<B> {
    pub(super) fn new() -> Self {
        Self { recycled: None, limit: PACKED_BYTES }
    }

    /// Frees the recycled adapter.
    pub(super) fn free_recycled(&mut self) {
        self.recycled = None;
    }

    /// Packs the adapters of `members`, the runs that take part in a pass. `waiting` are all runs with requests.
    pub(super) fn pack(
        &mut self,
        backend: &B,
        runs: &mut BTreeMap<RunId, TrainingRun<B>>,
        members: &[&RunId],
        waiting: &[&RunId],
    ) {
        for member in members {
            self.evict_for(backend, runs, member, members, waiting);
            if let Some(run) = runs.get_mut(*member) {
                run.pack(backend, &mut self.recycled);
            }
        }
    }

    /// Evicts adapters of runs that do not take part in the pass, those without requests first, until the adapter of
    /// `member` fits within the limit. The memory of an evicted adapter is recycled for it.
    fn evict_for(
        &mut self,
        backend: &B,
        runs: &mut BTreeMap<RunId, TrainingRun<B>>,
        member: &RunId,
        members: &[&RunId],
        waiting: &[&RunId],
    ) {
        let Some(run) = runs.get(member) else { return };
        let packed = run.packed_bytes(backend);
        let needed = run.adapter_bytes(true).saturating_sub(packed);
        if needed == 0 {
            return;
        }
        loop {
            let usable = |recycled: &RecycledAdapter<B>| {
                packed == 0 && runs.get(member).is_some_and(|run| run.can_use(recycled))
            };
            let (recycled_bytes, fits) =
                self.recycled.as_ref().map_or((0, false), |recycled| (recycled.bytes(backend), usable(recycled)));
            // Adapters of the other runs in the pass grow in the backward pass.
            let of = |(id, run): (&RunId, &TrainingRun<B>)| match run.packed_bytes(backend) {
                packed if packed > 0 && id != member && members.contains(&id) => run.adapter_bytes(true),
                packed => packed,
            };
            let held: usize = runs.iter().map(of).sum();
            if held + if fits { needed.max(recycled_bytes) } else { needed + recycled_bytes } <= self.limit {
                return;
            }
            if recycled_bytes > 0 && !fits {
                self.recycled = None;
                continue;
            }
            let others = runs.iter_mut().filter(|(id, run)| !members.contains(id) && run.packed_bytes(backend) > 0);
            let Some((_, other)) = others.min_by_key(|(id, _)| waiting.contains(id)) else { return };
            let evicted = other.unpack();
            self.recycled = self.recycled.take().or(evicted);
        }
    }

    /// Enforces the limit after a request of `run`: frees the recycled adapter, then the packed one of `run`. The next
    /// request packs it anew, as it must anyway after an optimizer step.
    pub(super) fn enforce_limit(&mut self, backend: &B, run: &RunId, runs: &mut BTreeMap<RunId, TrainingRun<B>>) {
        let held = held(backend, runs);
        if held + self.recycled.as_ref().map_or(0, |recycled| recycled.bytes(backend)) > self.limit {
            self.recycled = None;
        }
        if let Some(run) = runs.get_mut(run)
            && held > self.limit.max(run.packed_bytes(backend))
        {
            drop(run.unpack());
        }
    }
}

/// Bytes of all packed adapters.
fn held<B: Backend>(backend: &B, runs: &BTreeMap<RunId, TrainingRun<B>>) -> usize {
    runs.values().map(|run| run.packed_bytes(backend)).sum()
}
