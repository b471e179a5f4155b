//! The queue of operations outside training and sampling batches: creation, loading, optimizer steps, saves.

use std::collections::BTreeSet;

use trainyard_protocol::{Operation, RequestId, RunId, TenantShare};

use super::fair_share::FairShare;
use super::tenant_queues::TenantQueues;

pub(super) type QueuedOperation = (RequestId, Operation);

/// Control operations by tenant, served round-robin: one operation each, or all optimizer steps together.
pub(super) struct ControlQueue {
    queues: TenantQueues<QueuedOperation>,
    fair_share: FairShare,
}

impl ControlQueue {
    pub(super) fn new() -> Self {
        Self { queues: TenantQueues::default(), fair_share: FairShare::new(1) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The shares of tenants with waiting operations.
    pub(super) fn shares(&self) -> impl Iterator<Item = &TenantShare> {
        self.queues.shares()
    }

    pub(super) fn push(&mut self, share: &TenantShare, id: RequestId, operation: Operation) {
        self.queues.push_back(share, (id, operation));
    }

    /// Drops the queued operations of a run.
    pub(super) fn drop_operations(&mut self, run: &RunId) {
        self.queues.retain(|(_, operation)| operation.run() != Some(run));
    }

    /// Drops the queued operations of these requests.
    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.queues.retain(|(id, _)| !ids.contains(id));
    }

    /// Whether there is an operation that `ready` accepts.
    pub(super) fn has(&self, mut ready: impl FnMut(&Operation) -> bool) -> bool {
        self.queues.iter().any(|(_, operation)| ready(operation))
    }

    /// Removes and returns the next operation that `ready` accepts: the oldest of the tenant whose turn it is. If it is
    /// an optimizer step, the queued optimizer steps of all tenants follow: they share one pass over the parameters.
    pub(super) fn next(&mut self, ready: impl Fn(&Operation) -> bool) -> Vec<QueuedOperation> {
        let Self { queues, fair_share } = self;
        let backlog: Vec<TenantShare> = queues.shares().cloned().collect();
        let mut next: Vec<QueuedOperation> = Vec::new();
        fair_share.fill(&backlog, |tenant| {
            let only_steps = next.first().is_some_and(|(_, operation)| is_optimizer_step(operation));
            if !next.is_empty() && !only_steps {
                return None;
            }
            let wanted = |(_, operation): &QueuedOperation| {
                if only_steps { is_optimizer_step(operation) } else { ready(operation) }
            };
            next.push(queues.take(tenant, wanted)?);
            Some(1)
        });
        if next.first().is_some_and(|(_, operation)| is_optimizer_step(operation)) {
            // Also those of tenants with a deficit: a later step would not be cheaper.
            for share in &backlog {
                next.extend(std::iter::from_fn(|| {
                    queues.take(&share.name, |(_, operation)| is_optimizer_step(operation))
                }));
            }
        }
        next
    }
}

fn is_optimizer_step(operation: &Operation) -> bool {
    matches!(operation, Operation::OptimStep { .. })
}
