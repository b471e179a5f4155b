//! Packed adapters of runs: which ones are kept, and whose memory is used again.

use std::collections::BTreeMap;

use trainyard_protocol::RunId;

use crate::engine::run::{LeftAdapter, Run};
use crate::kernels::Cpu;

/// Bytes of packed adapters, those of runs without a request included.
const PACKED_BYTES: usize = 64 << 20;

/// Bounds what packed adapters take: a pass has those of its runs, and the rest stays within a limit together with them.
pub(super) struct Packed {
    /// Memory of an adapter that is not in use.
    pub(super) left: Option<LeftAdapter>,
    pub(super) limit: usize,
}

impl Packed {
    pub(super) fn new() -> Self {
        Self { left: None, limit: PACKED_BYTES }
    }

    /// Gives up memory that is not in use.
    pub(super) fn forget(&mut self) {
        self.left = None;
    }

    /// Packs the adapters of the runs that take part in a pass. `waiting` runs have requests.
    pub(super) fn pack(&mut self, cpu: &Cpu, runs: &mut BTreeMap<RunId, Run>, members: &[&RunId], waiting: &[&RunId]) {
        for member in members {
            self.make_room(runs, member, members, waiting);
            if let Some(run) = runs.get_mut(*member) {
                run.pack(cpu, &mut self.left);
            }
        }
    }

    /// Lets adapters of runs go that do not take part in the pass, first those without requests, until that of `member`
    /// fits within the limit. What goes last is memory for it.
    fn make_room(&mut self, runs: &mut BTreeMap<RunId, Run>, member: &RunId, members: &[&RunId], waiting: &[&RunId]) {
        let Some(run) = runs.get(member) else { return };
        let packed = run.packed_bytes();
        let needed = run.adapter_bytes(true).saturating_sub(packed);
        if needed == 0 {
            return;
        }
        loop {
            let usable = |left: &LeftAdapter| packed == 0 && runs.get(member).is_some_and(|run| run.can_use(left));
            let (left, fits) = self.left.as_ref().map_or((0, false), |left| (left.bytes(), usable(left)));
            // Those of the pass's other runs grow in its backward part.
            let of = |(id, run): (&RunId, &Run)| match run.packed_bytes() {
                packed if packed > 0 && id != member && members.contains(&id) => run.adapter_bytes(true),
                packed => packed,
            };
            let held: usize = runs.iter().map(of).sum();
            if held + if fits { needed.max(left) } else { needed + left } <= self.limit {
                return;
            }
            if left > 0 && !fits {
                self.left = None;
                continue;
            }
            let others = runs.iter_mut().filter(|(id, run)| !members.contains(id) && run.packed_bytes() > 0);
            let Some((_, other)) = others.min_by_key(|(id, _)| waiting.contains(id)) else { return };
            let gone = other.unpack();
            self.left = self.left.take().or(gone);
        }
    }

    /// After a request of a run: keeps its packed adapter for the next one if the limit allows it, else it is packed again,
    /// as it must be in any case when an optimizer step comes first.
    pub(super) fn settle(&mut self, run: &RunId, runs: &mut BTreeMap<RunId, Run>) {
        let held = held(runs);
        if held + self.left.as_ref().map_or(0, LeftAdapter::bytes) > self.limit {
            self.left = None;
        }
        if let Some(run) = runs.get_mut(run)
            && held > self.limit.max(run.packed_bytes())
        {
            drop(run.unpack());
        }
    }
}

/// Bytes of all packed adapters.
fn held(runs: &BTreeMap<RunId, Run>) -> usize {
    runs.values().map(Run::packed_bytes).sum()
}
