//! Admission control of waiting requests, and preemption of active ones when the KV budget is exceeded.
//!
//! Requests are admitted by weighted deficit round-robin over tenants. The number of sequences and the KV budget are
//! divided in the same way: a tenant below its share of them is admitted although others hold all of it.

use std::sync::Arc;

use trainyard_protocol::TenantShare;

use super::Sampler;
use super::fair_share::FairShare;
use super::pass::PassPart;
use super::task::{SampleTask, StreamTarget};
use crate::backend::Backend;

/// Sequences that decode together; exceeded only by tenants below their share.
const MAX_SEQUENCES: usize = 256;

/// Decision about the oldest waiting request of a tenant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    Admit,
    /// The tenant holds its share; other tenants may be admitted.
    TenantWaits,
    /// The tenant is below its share but the request does not fit yet: no other tenant is admitted before it, so that it
    /// gets the capacity that is released next.
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
            let admission = self.check_admission(tenant);
            closed = admission == Admission::AllWait;
            if admission == Admission::Admit { self.activate(tenant) } else { None }
        });
        self.admissions = fair_share;
    }

    /// Moves a tenant's oldest waiting request to the active ones. Returns the tokens of its prompt.
    fn activate(&mut self, tenant: &str) -> Option<usize> {
        let task = self.waiting.take(tenant, |_| true)?;
        if !self.weights_rotation.iter().any(|weights| Arc::ptr_eq(weights, &task.weights.weights)) {
            self.weights_rotation.push_back(Arc::clone(&task.weights.weights));
        }
        let at = self.active.partition_point(|other| other.arrival < task.arrival);
        let tokens = task.prompt_tokens();
        self.active.insert(at, task);
        Some(tokens)
    }

    fn check_admission(&mut self, tenant: &str) -> Admission {
        if let Some(next) = self.waiting.front_mut(tenant) {
            next.set_width(MAX_SEQUENCES, self.kv_bytes);
        }
        let admission = self.check_sequences(tenant);
        if admission != Admission::Admit {
            return admission;
        }
        let Some(next) = self.waiting.front_mut(tenant) else { return Admission::TenantWaits };
        for target in next.targets() {
            next.attach_cached(target, &mut self.cache);
        }
        let (footprint, uncached) = (next.footprint_bytes(), next.reserved_blocks() * next.block_bytes());
        let admission = self.check_kv_budget(tenant, footprint, uncached);
        if admission != Admission::Admit
            && let Some(next) = self.waiting.front_mut(tenant)
        {
            next.release_kv();
        }
        admission
    }

    fn check_sequences(&mut self, tenant: &str) -> Admission {
        let Some(next) = self.waiting.front_mut(tenant).map(|task| task.sequences()) else {
            return Admission::TenantWaits;
        };
        let running: usize = self.active.iter().map(SampleTask::sequences).sum();
        if self.active.is_empty() || running + next <= MAX_SEQUENCES {
            return Admission::Admit;
        }
        within_share(self.held(tenant, SampleTask::sequences), next, self.share_of(tenant, MAX_SEQUENCES))
    }

    /// For a request that reserves `footprint` bytes, of which `uncached` are not in the cache yet. Preempts requests of
    /// a tenant above its share for one below its share.
    fn check_kv_budget(&mut self, tenant: &str, footprint: usize, uncached: usize) -> Admission {
        loop {
            let reserved = |task: &SampleTask<B>| task.reserved_blocks() * task.block_bytes();
            let reserved = uncached + self.active.iter().map(reserved).sum::<usize>();
            self.cache.evict(self.kv_bytes.saturating_sub(reserved));
            if self.active.is_empty() || self.cache.bytes() + reserved <= self.kv_bytes {
                return Admission::Admit;
            }
            let held = self.held(tenant, SampleTask::footprint_bytes);
            let admission = within_share(held, footprint, self.share_of(tenant, self.kv_bytes));
            if admission != Admission::Admit {
                return admission;
            }
            match self.preemptable_for(tenant) {
                Some(victim) => self.preempt(victim),
                None => return Admission::AllWait,
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

    /// The youngest request of the tenant that holds the most KV bytes relative to its weight.
    fn largest_holder(&self) -> Option<usize> {
        let load = |task: &SampleTask<B>| {
            let weight = u64::from(task.share.weight.get());
            self.held(&task.share.name, SampleTask::footprint_bytes) as u64 * 1000 / weight
        };
        (0..self.active.len()).max_by_key(|i| (load(&self.active[*i]), self.active[*i].arrival))
    }

    /// Sum of `amount` over a tenant's active requests.
    fn held(&self, tenant: &str, amount: impl Fn(&SampleTask<B>) -> usize) -> usize {
        self.active.iter().filter(|task| *task.share.name == *tenant).map(amount).sum()
    }

    /// The part of `capacity` that a tenant's weight entitles it to, among all tenants with waiting or active requests.
    fn share_of(&self, tenant: &str, capacity: usize) -> usize {
        let mut shares: Vec<&TenantShare> =
            self.waiting.shares().chain(self.active.iter().map(|task| &task.share)).collect();
        shares.sort_by(|a, b| a.name.cmp(&b.name));
        shares.dedup_by(|a, b| a.name == b.name);
        let total: u128 = shares.iter().map(|share| u128::from(share.weight.get())).sum();
        let own = shares.iter().find(|other| *other.name == *tenant).map_or(0, |own| u128::from(own.weight.get()));
        (capacity as u128 * own).checked_div(total).map_or(0, |entitled| entitled as usize)
    }

    /// Releases the blocks of an active request and moves it to the front of its tenant's queue.
    fn preempt(&mut self, victim: usize) {
        let mut task = self.active.remove(victim);
        task.release_kv();
        let share = task.share.clone();
        self.waiting.push_front(&share, task);
    }

    /// Frees KV memory for the blocks that a pass adds: evicts cached blocks, then preempts the youngest request of the
    /// tenant that holds most, whose parts it removes. Admission reserves less than the largest length of sequences, so
    /// that the budget can be exceeded here. A request that is alone continues with fewer sequences instead.
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

/// For a tenant that holds `held` of its share `entitled` and asks for `more`, when no capacity is free.
fn within_share(held: usize, more: usize, entitled: usize) -> Admission {
    if held + more <= entitled {
        Admission::Admit
    } else if held >= entitled {
        Admission::TenantWaits
    } else {
        Admission::AllWait
    }
}
