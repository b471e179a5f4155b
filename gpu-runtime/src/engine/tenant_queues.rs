//! Waiting items, in one queue per tenant.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trainyard_protocol::TenantShare;

/// First-in, first-out queues by tenant; only tenants with waiting items have one.
pub(super) struct TenantQueues<T> {
    tenants: BTreeMap<Arc<str>, (TenantShare, VecDeque<T>)>,
}

impl<T> Default for TenantQueues<T> {
    fn default() -> Self {
        Self { tenants: BTreeMap::new() }
    }
}

impl<T> TenantQueues<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// The shares of tenants with waiting items.
    pub(super) fn shares(&self) -> impl Iterator<Item = &TenantShare> {
        self.tenants.values().map(|(share, _)| share)
    }

    /// All items, tenant by tenant, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.tenants.values().flat_map(|(_, queue)| queue)
    }

    pub(super) fn push_back(&mut self, share: &TenantShare, item: T) {
        self.queue(share).push_back(item);
    }

    /// The queue of a tenant; takes over the weight of `share`.
    fn queue(&mut self, share: &TenantShare) -> &mut VecDeque<T> {
        let (known, queue) =
            self.tenants.entry(Arc::clone(&share.name)).or_insert_with(|| (share.clone(), VecDeque::new()));
        known.weight = share.weight;
        queue
    }

    /// Removes and returns the oldest item of a tenant that `wanted` accepts.
    pub(super) fn take(&mut self, tenant: &str, wanted: impl FnMut(&T) -> bool) -> Option<T> {
        let (_, queue) = self.tenants.get_mut(tenant)?;
        let item = queue.iter().position(wanted).and_then(|at| queue.remove(at));
        if queue.is_empty() {
            self.tenants.remove(tenant);
        }
        item
    }

    /// Removes items that `keep` rejects.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.tenants.retain(|_, (_, queue)| {
            queue.retain(&mut keep);
            !queue.is_empty()
        });
    }
}
