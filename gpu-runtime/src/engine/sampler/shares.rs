//! Shares of a capacity (sequences, bytes of keys and values): what tenants and their sessions hold, and what they are
//! entitled to.

use std::collections::BTreeMap;

use trainyard_protocol::{SessionId, TenantShare};

use super::Sampler;
use super::task::SampleTask;
use crate::backend::Backend;

/// Maximum number of sequences that decode together; exceeded only by tenants and sessions below their share.
pub const MAX_SEQUENCES: usize = 256;

/// A session with waiting requests.
pub(super) struct SessionTurn {
    pub(super) session: SessionId,
    /// Whether it is its turn to get capacity that is free.
    pub(super) is_first: bool,
    /// Sequences that it is entitled to beyond those that it holds.
    pub(super) entitled: usize,
}

impl<B: Backend> Sampler<B> {
    /// Sum of `amount` over a tenant's active requests.
    pub(super) fn held(&self, tenant: &str, amount: impl Fn(&SampleTask<B>) -> usize) -> usize {
        self.active.iter().filter(|task| *task.share.name == *tenant).map(amount).sum()
    }

    /// Sum of `amount` over the active requests of one of its sessions.
    pub(super) fn held_by_session(
        &self,
        tenant: &str,
        session: &SessionId,
        amount: impl Fn(&SampleTask<B>) -> usize,
    ) -> usize {
        self.held(tenant, |task| if task.session == *session { amount(task) } else { 0 })
    }

    /// The part of `capacity` that a tenant's weight entitles it to, among all tenants with waiting or active requests.
    pub(super) fn share_of(&self, tenant: &str, capacity: usize) -> usize {
        let mut shares: Vec<&TenantShare> =
            self.waiting.shares().chain(self.active.iter().map(|task| &task.share)).collect();
        shares.sort_by(|a, b| a.name.cmp(&b.name));
        shares.dedup_by(|a, b| a.name == b.name);
        let total: u128 = shares.iter().map(|share| u128::from(share.weight.get())).sum();
        let own = shares.iter().find(|other| *other.name == *tenant).map_or(0, |own| u128::from(own.weight.get()));
        (capacity as u128 * own).checked_div(total).map_or(0, |entitled| entitled as usize)
    }

    /// The part of `capacity` that each session of a tenant is entitled to, among those with waiting or active requests.
    pub(super) fn share_of_session(&self, tenant: &str, capacity: usize) -> usize {
        let active = self.active.iter().filter(|task| *task.share.name == *tenant).map(|task| &task.session);
        let mut sessions: Vec<&SessionId> = self.waiting.sessions(tenant).map(|(id, _)| id).chain(active).collect();
        sessions.sort_unstable();
        sessions.dedup();
        self.share_of(tenant, capacity) / sessions.len().max(1)
    }

    /// The sessions of a tenant with waiting requests: first those that hold the fewest sequences, of these the one that
    /// waits longest.
    pub(super) fn sessions_by_turn(&self, tenant: &str) -> Vec<SessionTurn> {
        let mut held: BTreeMap<&SessionId, usize> = self.waiting.sessions(tenant).map(|(id, _)| (id, 0)).collect();
        for task in self.active.iter().filter(|task| *task.share.name == *tenant) {
            *held.entry(&task.session).or_default() += task.sequences();
        }
        let share = self.share_of(tenant, MAX_SEQUENCES) / held.len().max(1);
        let held_by = |id| held.get(id).copied().unwrap_or(0);
        let mut waiting: Vec<_> =
            self.waiting.sessions(tenant).map(|(id, oldest)| (held_by(id), oldest.arrival, id)).collect();
        waiting.sort_unstable();
        let turn = |(place, (held, _, id)): (usize, (usize, u64, &SessionId))| SessionTurn {
            session: id.clone(),
            is_first: place == 0,
            entitled: share.saturating_sub(held),
        };
        waiting.into_iter().enumerate().map(turn).collect()
    }
}
