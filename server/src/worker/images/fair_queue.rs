//! Weighted deficit round-robin over tenants (Shreedhar & Varghese 1995), counted in pixels.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use trainyard_protocol::TenantShare;

/// Pixels that a tenant of weight 1 may have decoded in one turn.
const QUANTUM: u64 = 1 << 20;

/// Waiting jobs of all tenants.
pub(super) struct FairQueue<T> {
    /// Tenants with jobs, in the order of their turns; the first one has the turn.
    lanes: VecDeque<Lane<T>>,
}

struct Lane<T> {
    tenant: Arc<str>,
    weight: NonZeroU32,
    /// Pixels that are left of the turns so far.
    credit: u64,
    /// Jobs with their pixels, in the order of their arrival.
    jobs: VecDeque<Waiting<T>>,
}

struct Waiting<T> {
    job: T,
    pixels: u64,
}

impl<T> Lane<T> {
    fn begin_turn(&mut self) {
        self.credit = self.credit.saturating_add(QUANTUM.saturating_mul(self.weight.get().into()));
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lanes: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    /// Adds a job of a tenant. The weight of the tenant's latest job applies to all of them.
    pub(super) fn push(&mut self, share: &TenantShare, pixels: u64, job: T) {
        let job = Waiting { job, pixels };
        match self.lanes.iter_mut().find(|lane| lane.tenant == share.name) {
            Some(lane) => {
                lane.weight = share.weight;
                lane.jobs.push_back(job);
            }
            None => {
                let (tenant, weight) = (Arc::clone(&share.name), share.weight);
                let mut lane = Lane { tenant, weight, credit: 0, jobs: VecDeque::from([job]) };
                if self.lanes.is_empty() {
                    lane.begin_turn();
                }
                self.lanes.push_back(lane);
            }
        }
    }

    /// Takes the next job.
    pub(super) fn pop(&mut self) -> Option<T> {
        loop {
            let lane = self.lanes.front_mut()?;
            let next = lane.jobs.front()?;
            if let Some(credit) = lane.credit.checked_sub(next.pixels) {
                lane.credit = credit;
                let job = lane.jobs.pop_front()?.job;
                // Unused credit is lost, so that a tenant can't save it for a burst.
                if lane.jobs.is_empty() {
                    self.lanes.pop_front();
                    if let Some(next) = self.lanes.front_mut() {
                        next.begin_turn();
                    }
                }
                return Some(job);
            }
            self.lanes.rotate_left(1);
            if let Some(next) = self.lanes.front_mut() {
                next.begin_turn();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn share(name: &str, weight: u32) -> TenantShare {
        TenantShare { name: name.into(), weight: NonZeroU32::new(weight).unwrap() }
    }

    /// The tenants of the first jobs, when each tenant has many of so many pixels.
    fn order(tenants: &[(&str, u32, u64)], first: usize) -> String {
        let mut queue = FairQueue::default();
        for &(name, weight, pixels) in tenants {
            for _ in 0..100 {
                queue.push(&share(name, weight), pixels, name.to_owned());
            }
        }
        (0..first).map(|_| queue.pop().unwrap()).collect()
    }

    #[test]
    fn tenants_take_turns_whatever_their_backlog() {
        assert_eq!(order(&[("a", 1, QUANTUM), ("b", 1, QUANTUM)], 6), "ababab");
        assert_eq!(order(&[("a", 1, QUANTUM / 2), ("b", 1, QUANTUM)], 6), "aabaab");
        assert_eq!(order(&[("a", 2, QUANTUM), ("b", 1, QUANTUM)], 6), "aabaab");
    }

    #[test]
    fn an_image_above_a_turn_waits_for_several() {
        assert_eq!(order(&[("a", 1, 3 * QUANTUM), ("b", 1, QUANTUM)], 8), "bbabbbab");
    }

    #[test]
    fn a_tenants_own_order_is_that_of_arrival() {
        let mut queue = FairQueue::default();
        for at in 0..5 {
            queue.push(&share("a", 1), 5 * QUANTUM, at);
        }
        queue.push(&share("b", 1), 1, 9);
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(all, [9, 0, 1, 2, 3, 4]);
        assert_eq!(queue.pop(), None);
    }
}
