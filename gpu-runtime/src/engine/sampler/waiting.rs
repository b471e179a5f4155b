//! Waiting requests: first-in, first-out within a session of a tenant.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use trainyard_protocol::{RequestId, SessionId, TenantShare};

use super::task::SampleTask;
use crate::backend::Backend;

/// Queues by tenant and session; only those with waiting requests are there.
pub(super) struct WaitingSamples<B: Backend> {
    tenants: BTreeMap<Arc<str>, TenantSamples<B>>,
}

struct TenantSamples<B: Backend> {
    share: TenantShare,
    sessions: BTreeMap<SessionId, VecDeque<SampleTask<B>>>,
}

impl<B: Backend> WaitingSamples<B> {
    pub(super) fn new() -> Self {
        Self { tenants: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// The shares of tenants with waiting requests.
    pub(super) fn shares(&self) -> impl Iterator<Item = &TenantShare> {
        self.tenants.values().map(|tenant| &tenant.share)
    }

    /// The sessions of a tenant with waiting requests, each with its oldest one.
    pub(super) fn sessions(&self, tenant: &str) -> impl Iterator<Item = (&SessionId, &SampleTask<B>)> {
        let sessions = self.tenants.get(tenant).into_iter().flat_map(|tenant| &tenant.sessions);
        sessions.filter_map(|(session, queue)| queue.front().map(|oldest| (session, oldest)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SampleTask<B>> {
        self.tenants.values_mut().flat_map(|tenant| tenant.sessions.values_mut()).flatten()
    }

    pub(super) fn push_back(&mut self, task: SampleTask<B>) {
        self.queue(&task).push_back(task);
    }

    pub(super) fn push_front(&mut self, task: SampleTask<B>) {
        self.queue(&task).push_front(task);
    }

    /// The queue of a request's session; takes over the weight of its tenant.
    fn queue(&mut self, task: &SampleTask<B>) -> &mut VecDeque<SampleTask<B>> {
        let new = || TenantSamples { share: task.share.clone(), sessions: BTreeMap::new() };
        let tenant = self.tenants.entry(Arc::clone(&task.share.name)).or_insert_with(new);
        tenant.share.weight = task.share.weight;
        tenant.sessions.entry(task.session.clone()).or_default()
    }

    /// The oldest request of a session.
    pub(super) fn front_mut(&mut self, tenant: &str, session: &SessionId) -> Option<&mut SampleTask<B>> {
        self.tenants.get_mut(tenant)?.sessions.get_mut(session)?.front_mut()
    }

    /// Removes and returns the oldest request of a session.
    pub(super) fn pop_front(&mut self, tenant: &str, session: &SessionId) -> Option<SampleTask<B>> {
        let task = self.tenants.get_mut(tenant)?.sessions.get_mut(session)?.pop_front();
        self.remove_empty();
        task
    }

    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        for tenant in self.tenants.values_mut() {
            tenant.sessions.values_mut().for_each(|queue| queue.retain(|task| !ids.contains(&task.id)));
        }
        self.remove_empty();
    }

    fn remove_empty(&mut self) {
        self.tenants.retain(|_, tenant| {
            tenant.sessions.retain(|_, queue| !queue.is_empty());
            !tenant.sessions.is_empty()
        });
    }
}
