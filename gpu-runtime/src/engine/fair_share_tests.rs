#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

const ROUND: usize = 256;

fn tenant_share(i: usize, weight: u32) -> TenantShare {
    TenantShare { name: format!("t{i}").into(), weight: NonZeroU32::new(weight).unwrap() }
}

/// TenantQueues of items by tenant, and batches of [`ROUND`] tokens from them.
#[derive(Default)]
struct Workload {
    shares: Vec<TenantShare>,
    queues: BTreeMap<Arc<str>, VecDeque<usize>>,
    served: BTreeMap<Arc<str>, usize>,
}

impl Workload {
    fn new(weights: &[u32]) -> Self {
        let shares = weights.iter().enumerate().map(|(i, weight)| tenant_share(i, *weight)).collect();
        Self { shares, ..Self::default() }
    }

    fn queue(&mut self, i: usize, items: impl IntoIterator<Item = usize>) {
        self.queues.entry(Arc::clone(&self.shares[i].name)).or_default().extend(items);
    }

    fn served(&self, i: usize) -> usize {
        self.served.get(&self.shares[i].name).copied().unwrap_or(0)
    }

    /// Fills a batch; an item is added when it fits or is the first. Returns the batch's tokens.
    fn batch(&mut self, fair_share: &mut FairShare) -> usize {
        let has_work = |share: &&TenantShare| self.queues.get(&share.name).is_some_and(|queue| !queue.is_empty());
        let backlog: Vec<TenantShare> = self.shares.iter().filter(has_work).cloned().collect();
        let mut used = 0;
        fair_share.fill(&backlog, |name| {
            let queue = self.queues.get_mut(name)?;
            let item = *queue.front().filter(|item| used == 0 || used + **item <= ROUND)?;
            queue.pop_front();
            used += item;
            *self.served.entry(Arc::clone(name)).or_default() += item;
            Some(item)
        });
        used
    }
}

#[test]
fn a_new_tenant_does_not_wait_for_the_backlog_of_others() {
    for item in [1, 32, 256, 1000, 8192] {
        let (mut workload, mut fair_share) = (Workload::new(&[1, 1]), FairShare::new(ROUND));
        workload.queue(0, std::iter::repeat_n(item, 1_000_000 / item));
        for _ in 0..3 {
            workload.batch(&mut fair_share);
        }
        workload.queue(1, [64; 4]);
        let batches = (1..10).find(|_| {
            workload.batch(&mut fair_share);
            workload.served(1) == 256
        });
        assert!(batches.unwrap() <= 3, "{item}: {batches:?}");
    }
}

#[test]
fn a_deficit_persists_while_a_tenant_is_idle_and_is_deducted() {
    let (mut workload, mut fair_share) = (Workload::new(&[1, 1]), FairShare::new(ROUND));
    workload.queue(0, [2000]);
    assert_eq!(workload.batch(&mut fair_share), 2000);
    // The first tenant is idle for one batch; the second one catches up before the first is served.
    workload.queue(1, [100; 200]);
    workload.batch(&mut fair_share);
    workload.queue(0, [100; 200]);
    let before = workload.served(0);
    while workload.served(0) == before {
        workload.batch(&mut fair_share);
    }
    assert!((1600..2300).contains(&workload.served(1)), "{}", workload.served(1));
}

#[test]
fn accounts_without_work_and_deficit_are_removed() {
    let (mut workload, mut fair_share) = (Workload::new(&[1; 50]), FairShare::new(ROUND));
    for i in 0..50 {
        workload.queue(i, [10]);
        workload.batch(&mut fair_share);
    }
    workload.queue(0, [10; 300]);
    while workload.batch(&mut fair_share) > 0 {}
    assert_eq!(fair_share.accounts.len(), 1);
    assert!(fair_share.next <= 1);
}

fn bounded(fair_share: &FairShare, largest: usize) -> bool {
    let most = |account: &Account| fair_share.round.max(account.weight);
    let least = -fair_share.round - largest as i64;
    fair_share.accounts.iter().all(|account| account.credit <= most(account) && account.credit > least)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Holds for any arrivals: a batch leaves out a fitting item only if its tenant has a deficit of a round, and
    /// credit and deficits stay bounded.
    #[test]
    fn batches_are_full_and_deficits_bounded(
        weights in prop::collection::vec(1u32..1000, 1..6),
        arrivals in prop::collection::vec((0usize..6, prop::collection::vec(1usize..700, 1..20), 0usize..4), 1..30),
    ) {
        let (mut workload, mut fair_share) = (Workload::new(&weights), FairShare::new(ROUND));
        let mut queued = 0;
        for (i, items, batches) in arrivals {
            queued += items.iter().sum::<usize>();
            workload.queue(i % weights.len(), items);
            for _ in 0..batches {
                let used = workload.batch(&mut fair_share);
                let fits = |queue: &VecDeque<usize>| queue.front().is_some_and(|item| used == 0 || used + item <= ROUND);
                let may = |name: &str| fair_share.accounts.iter().any(|a| *a.tenant == *name && a.credit > -(ROUND as i64));
                prop_assert!(!workload.queues.iter().any(|(name, queue)| fits(queue) && may(name)));
                prop_assert!(bounded(&fair_share, 700));
            }
        }
        while workload.batch(&mut fair_share) > 0 {
            prop_assert!(bounded(&fair_share, 700));
        }
        prop_assert_eq!(workload.served.values().sum::<usize>(), queued);
    }

    /// Tenants that always have work get tokens in proportion to their weights, whatever the sizes of their items.
    #[test]
    fn shares_are_proportional_under_saturation(
        tenants in prop::collection::vec((1u32..9, 1usize..400), 2..7),
    ) {
        let weights: Vec<u32> = tenants.iter().map(|(weight, _)| *weight).collect();
        let (mut workload, mut fair_share) = (Workload::new(&weights), FairShare::new(ROUND));
        let total: usize = 400_000;
        for (i, (_, item)) in tenants.iter().enumerate() {
            workload.queue(i, std::iter::repeat_n(*item, total / item));
        }
        // No queue runs empty before this.
        let mut served = 0;
        while served < total / 2 {
            served += workload.batch(&mut fair_share);
        }
        let all: u32 = weights.iter().sum();
        for (i, (weight, item)) in tenants.iter().enumerate() {
            let due = served as f64 * f64::from(*weight) / f64::from(all);
            let off = (workload.served(i) as f64 - due).abs();
            // An item, and what was borrowed to fill a batch, relative to the shares of all.
            let (weight, all) = (f64::from(*weight), f64::from(all));
            let slack = 2.0 * (400.0 + 2.0 * ROUND as f64) * (1.0 + weight / all * tenants.len() as f64);
            prop_assert!(off <= slack, "tenant {} with items of {}: {} of {}", i, item, workload.served(i), due);
        }
    }
}
