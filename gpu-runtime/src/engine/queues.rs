//! What waits, by flow.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trainyard_protocol::Flow;

/// A queue for each flow that has something in it.
pub(super) struct Queues<T> {
    flows: BTreeMap<Arc<str>, (Flow, VecDeque<T>)>,
}

impl<T> Default for Queues<T> {
    fn default() -> Self {
        Self { flows: BTreeMap::new() }
    }
}

impl<T> Queues<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The flows that have something.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values().map(|(flow, _)| flow)
    }

    /// Everything, flow by flow, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.flows.values().flat_map(|(_, queue)| queue)
    }

    /// As [`Queues::iter`], to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.flows.values_mut().flat_map(|(_, queue)| queue)
    }

    pub(super) fn push_back(&mut self, flow: &Flow, item: T) {
        self.queue(flow).push_back(item);
    }

    pub(super) fn push_front(&mut self, flow: &Flow, item: T) {
        self.queue(flow).push_front(item);
    }

    fn queue(&mut self, flow: &Flow) -> &mut VecDeque<T> {
        let (known, queue) =
            self.flows.entry(Arc::clone(&flow.name)).or_insert_with(|| (flow.clone(), VecDeque::new()));
        known.weight = flow.weight;
        queue
    }

    /// The oldest item of a flow.
    pub(super) fn front_mut(&mut self, flow: &str) -> Option<&mut T> {
        self.flows.get_mut(flow)?.1.front_mut()
    }

    /// Takes the oldest item of a flow that `wanted` accepts.
    pub(super) fn take(&mut self, flow: &str, wanted: impl FnMut(&T) -> bool) -> Option<T> {
        let (_, queue) = self.flows.get_mut(flow)?;
        let item = queue.iter().position(wanted).and_then(|at| queue.remove(at));
        if queue.is_empty() {
            self.flows.remove(flow);
        }
        item
    }

    /// Keeps what `keep` accepts.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.flows.retain(|_, (_, queue)| {
            queue.retain(&mut keep);
            !queue.is_empty()
        });
    }
}
