//! Operations that are not batched: creation, loading, optimizer steps, saves.

use trainyard_protocol::{Flow, Operation, RequestId, RunId};

use super::fair::Fair;
use super::queues::Queues;

/// A queued operation.
pub(super) type Queued = (RequestId, Operation);

/// Operations by flow. Flows take turns, one operation each.
pub(super) struct Control {
    queues: Queues<Queued>,
    fair: Fair,
}

impl Control {
    pub(super) fn new() -> Self {
        Self { queues: Queues::default(), fair: Fair::new(1) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn push(&mut self, flow: &Flow, id: RequestId, operation: Operation) {
        self.queues.push_back(flow, (id, operation));
    }

    /// Drops the operations of a run.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.queues.retain(|(_, operation)| operation.run() != Some(run));
    }

    /// Whether there is an operation that `ready` accepts.
    pub(super) fn has(&self, mut ready: impl FnMut(&Operation) -> bool) -> bool {
        self.queues.iter().any(|(_, operation)| ready(operation))
    }

    /// The next operation among those that `ready` accepts: the oldest of the flow whose turn it is. With an optimizer
    /// step come all others, of all flows: they share one pass over the parameters.
    pub(super) fn next(&mut self, ready: impl Fn(&Operation) -> bool) -> Vec<Queued> {
        let Self { queues, fair } = self;
        let backlog: Vec<Flow> = queues.flows().cloned().collect();
        let mut next: Vec<Queued> = Vec::new();
        fair.fill(&backlog, |flow| {
            let steps = next.first().is_some_and(|(_, operation)| is_step(operation));
            if !next.is_empty() && !steps {
                return None;
            }
            let wanted = |(_, operation): &Queued| if steps { is_step(operation) } else { ready(operation) };
            next.push(queues.take(flow, wanted)?);
            Some(1)
        });
        if next.first().is_some_and(|(_, operation)| is_step(operation)) {
            // Those of flows that are behind with their turns as well: waiting would not make them cheaper.
            for flow in &backlog {
                next.extend(std::iter::from_fn(|| queues.take(&flow.name, |(_, operation)| is_step(operation))));
            }
        }
        next
    }
}

fn is_step(operation: &Operation) -> bool {
    matches!(operation, Operation::OptimStep { .. })
}
