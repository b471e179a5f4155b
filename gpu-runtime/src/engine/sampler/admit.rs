//! Admission control of waiting requests, and preemption of active ones when the KV budget is exceeded.
//!
//! Requests are admitted by weighted deficit round-robin over tenants, and within a tenant from the session that holds
//! the fewest sequences. The number of sequences and the KV budget are divided in the same way: first among tenants by
//! their weights, then evenly among a tenant's sessions. Those below their share are admitted even if others hold all
//! capacity.

use std::sync::Arc;

use trainyard_protocol::{SessionId, TenantShare};

use super::Sampler;
use super::part::PassPart;
use super::shares::{MAX_SEQUENCES, SessionTurn};
use super::task::{SampleTask, StreamTarget};
use crate::backend::Backend;
use crate::engine::fair_share::FairShare;

/// Decision about the oldest waiting request of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    Admit,
    /// The tenant holds its share; other tenants may be admitted.
    TenantWaits,
    /// The tenant is below its share but the request does not fit yet: other tenants wait, so that it gets the capacity
    /// that is released next.
    AllWait,
}

impl<B: Backend> Sampler<B> {
    /// Admits the requests that fit. A request that exceeds the limits decodes some of its sequences at a time, one at
    /// least. Cached blocks that no request holds are evicted for it.
    pub(super) fn admit(&mut self) {
        let backlog: Vec<TenantShare> = self.waiting.shares().cloned().collect();
        let mut fair_share = std::mem::replace(&mut self.admissions, FairShare::new(1));
        let mut closed = false;
        fair_share.fill(&backlog, |tenant| {
            if closed {
                return None;
            }
            for turn in self.sessions_by_turn(tenant) {
                match self.check_admission(tenant, &turn) {
                    Admission::Admit => return self.activate(tenant, &turn.session),
                    Admission::AllWait => closed = true,
                    Admission::TenantWaits => {}
                }
            }
            None
        });
        self.admissions = fair_share;
    }

    /// Moves a session's oldest waiting request to the active ones. Returns the tokens of its prompt.
    fn activate(&mut self, tenant: &str, session: &SessionId) -> Option<usize> {
        let mut task = self.waiting.pop_front(tenant, session)?;
        if !std::mem::replace(&mut task.was_admitted, true) {
            self.admitted.push(task.id.clone());
        }
        if !self.weights_rotation.iter().any(|weights| Arc::ptr_eq(weights, &task.weights.weights)) {
            self.weights_rotation.push_back(Arc::clone(&task.weights.weights));
        }
        let at = self.active.partition_point(|other| other.arrival < task.arrival);
        let tokens = task.prompt_tokens();
        self.active.insert(at, task);
        Some(tokens)
    }

    /// Whether a session's oldest waiting request can be admitted. When it is the session's turn, it may use the capacity
    /// that is free; others only what they are entitled to.
    fn check_admission(&mut self, tenant: &str, turn: &SessionTurn) -> Admission {
        let session = &turn.session;
        let Some(next) = self.waiting.front_mut(tenant, session) else { return Admission::TenantWaits };
        next.set_width(MAX_SEQUENCES, self.kv_bytes);
        let sequences = next.sequences();
        let admission = self.check_sequences(tenant, turn, sequences);
        if admission != Admission::Admit {
            return admission;
        }
        let Some(next) = self.waiting.front_mut(tenant, session) else { return Admission::TenantWaits };
        for target in next.targets() {
            next.attach_cached(target, &mut self.cache);
        }
        let (footprint, uncached) = (next.footprint_bytes(), next.reserved_blocks() * next.block_bytes());
        let admission = self.check_kv_budget(tenant, session, footprint, uncached);
        if admission != Admission::Admit
            && let Some(next) = self.waiting.front_mut(tenant, session)
        {
            next.release_kv();
        }
        if turn.is_first || admission == Admission::Admit { admission } else { Admission::TenantWaits }
    }

    fn check_sequences(&self, tenant: &str, turn: &SessionTurn, next: usize) -> Admission {
        let running: usize = self.active.iter().map(SampleTask::sequences).sum();
        if next <= turn.entitled || (turn.is_first && (self.active.is_empty() || running + next <= MAX_SEQUENCES)) {
            return Admission::Admit;
        }
        if !turn.is_first {
            return Admission::TenantWaits;
        }
        within_share(self.held(tenant, SampleTask::sequences), next, self.share_of(tenant, MAX_SEQUENCES))
    }

    /// Decides on a request that reserves `footprint` bytes, of which `uncached` are not in the cache yet. Preempts
    /// requests of a tenant above its share for one below its share, and likewise among the sessions of a tenant.
    fn check_kv_budget(&mut self, tenant: &str, session: &SessionId, footprint: usize, uncached: usize) -> Admission {
        loop {
            let reserved = |task: &SampleTask<B>| task.reserved_blocks() * task.block_bytes();
            let reserved = uncached + self.active.iter().map(reserved).sum::<usize>();
            self.cache.evict(self.kv_bytes.saturating_sub(reserved));
            if self.active.is_empty() || self.cache.bytes() + reserved <= self.kv_bytes {
                return Admission::Admit;
            }
            let held = self.held(tenant, SampleTask::footprint_bytes);
            let of_tenant = within_share(held, footprint, self.share_of(tenant, self.kv_bytes));
            let held = self.held_by_session(tenant, session, SampleTask::footprint_bytes);
            let within_session = held + footprint <= self.share_of_session(tenant, self.kv_bytes);
            let of_others = if of_tenant == Admission::Admit { self.preemptable_for(tenant) } else { None };
            let victim =
                of_others.or_else(|| if within_session { self.preemptable_within(tenant, session) } else { None });
            match (victim, of_tenant) {
                (Some(victim), _) => self.preempt(victim),
                (None, Admission::Admit) => return Admission::AllWait,
                (None, waits) => return waits,
            }
        }
    }

    /// The request that [`Sampler::largest_holder`] names, if its tenant is above its share and not `claimant`.
    fn preemptable_for(&self, claimant: &str) -> Option<usize> {
        let victim = self.largest_holder()?;
        let tenant = &self.active[victim].share.name;
        let exceeds = self.held(tenant, SampleTask::footprint_bytes) > self.share_of(tenant, self.kv_bytes);
        (exceeds && **tenant != *claimant).then_some(victim)
    }

    /// The youngest request of the session of `tenant` that holds the most KV bytes, if that session is above its share
    /// and not `claimant`.
    fn preemptable_within(&self, tenant: &str, claimant: &SessionId) -> Option<usize> {
        let held = |i: usize| self.held_by_session(tenant, &self.active[i].session, SampleTask::footprint_bytes);
        let of_tenant = (0..self.active.len()).filter(|i| *self.active[*i].share.name == *tenant);
        let victim = of_tenant.max_by_key(|i| (held(*i), self.active[*i].arrival))?;
        let exceeds = held(victim) > self.share_of_session(tenant, self.kv_bytes);
        (exceeds && self.active[victim].session != *claimant).then_some(victim)
    }

    /// The youngest request of the tenant that holds the most KV bytes relative to its weight.
    fn largest_holder(&self) -> Option<usize> {
        let load = |task: &SampleTask<B>| {
            let weight = u64::from(task.share.weight.get());
            self.held(&task.share.name, SampleTask::footprint_bytes) as u64 * 1000 / weight
        };
        (0..self.active.len()).max_by_key(|i| (load(&self.active[*i]), self.active[*i].arrival))
    }

    /// Releases the blocks of an active request and moves it to the front of its session's queue.
    fn preempt(&mut self, victim: usize) {
        let mut task = self.active.remove(victim);
        task.release_kv();
        self.waiting.push_front(task);
    }

    /// Frees KV memory for the blocks that a pass adds: evicts cached blocks, then preempts the youngest request of the
    /// tenant that holds most, and removes the request's parts. Admission reserves less than the largest length of
    /// sequences, so the budget can be exceeded here. If only one request is active, it continues with fewer sequences
    /// instead.
    pub(super) fn enforce_kv_budget(&mut self, parts: &mut Vec<PassPart>) {
        loop {
            let growth = |part: &PassPart| {
                let task = &self.active[part.task];
                task.growth(part.target, part.positions.end) * task.block_bytes()
            };
            let needed = self.own_bytes() + parts.iter().map(growth).sum::<usize>();
            self.cache.evict(self.kv_bytes.saturating_sub(needed));
            if self.cache.bytes() + needed <= self.kv_bytes {
                return;
            }
            if let [only] = &mut self.active[..] {
                if !only.reduce_width() {
                    return;
                }
                let remaining: Vec<StreamTarget> = only.targets().collect();
                parts.retain(|part| remaining.contains(&part.target));
                continue;
            }
            let Some(victim) = self.largest_holder() else { return };
            self.preempt(victim);
            parts.retain(|part| part.task != victim);
            parts.iter_mut().filter(|part| part.task > victim).for_each(|part| part.task -= 1);
        }
    }
}

/// Decides for a tenant that holds `held` of its share `entitled` and asks for `more`, when no capacity is free.
fn within_share(held: usize, more: usize, entitled: usize) -> Admission {
    if held + more <= entitled {
        Admission::Admit
    } else if held >= entitled {
        Admission::TenantWaits
    } else {
        Admission::AllWait
    }
}
