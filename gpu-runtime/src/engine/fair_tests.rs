#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

const ROUND: usize = 256;

fn flow(i: usize, weight: u32) -> Flow {
    Flow { name: format!("f{i}").into(), weight: NonZeroU32::new(weight).unwrap() }
}

/// Queues of items, and batches of [`ROUND`] tokens from them.
#[derive(Default)]
struct Bench {
    flows: Vec<Flow>,
    queues: BTreeMap<Arc<str>, VecDeque<usize>>,
    served: BTreeMap<Arc<str>, usize>,
}

impl Bench {
    fn new(weights: &[u32]) -> Self {
        let flows = weights.iter().enumerate().map(|(i, weight)| flow(i, *weight)).collect();
        Self { flows, ..Self::default() }
    }

    fn queue(&mut self, i: usize, items: impl IntoIterator<Item = usize>) {
        self.queues.entry(Arc::clone(&self.flows[i].name)).or_default().extend(items);
    }

    fn served(&self, i: usize) -> usize {
        self.served.get(&self.flows[i].name).copied().unwrap_or(0)
    }

    /// Fills a batch to which an item is added when it fits or is the first. Returns the batch's tokens.
    fn batch(&mut self, fair: &mut Fair) -> usize {
        let has_work = |flow: &&Flow| self.queues.get(&flow.name).is_some_and(|queue| !queue.is_empty());
        let backlog: Vec<Flow> = self.flows.iter().filter(has_work).cloned().collect();
        let mut used = 0;
        fair.fill(&backlog, |name| {
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
fn a_newcomer_does_not_wait_for_what_was_queued() {
    for item in [1, 32, 256, 1000, 8192] {
        let (mut bench, mut fair) = (Bench::new(&[1, 1]), Fair::new(ROUND));
        bench.queue(0, std::iter::repeat_n(item, 1_000_000 / item));
        for _ in 0..3 {
            bench.batch(&mut fair);
        }
        bench.queue(1, [64; 4]);
        let batches = (1..10).find(|_| {
            bench.batch(&mut fair);
            bench.served(1) == 256
        });
        assert!(batches.unwrap() <= 3, "{item}: {batches:?}");
    }
}

#[test]
fn debts_outlive_a_pause_and_are_paid() {
    let (mut bench, mut fair) = (Bench::new(&[1, 1]), Fair::new(ROUND));
    bench.queue(0, [2000]);
    assert_eq!(bench.batch(&mut fair), 2000);
    // The first one is without work for a moment; the second one catches up before it goes on.
    bench.queue(1, [100; 200]);
    bench.batch(&mut fair);
    bench.queue(0, [100; 200]);
    let before = bench.served(0);
    while bench.served(0) == before {
        bench.batch(&mut fair);
    }
    assert!((1600..2300).contains(&bench.served(1)), "{}", bench.served(1));
}

#[test]
fn flows_that_are_done_are_forgotten() {
    let (mut bench, mut fair) = (Bench::new(&[1; 50]), Fair::new(ROUND));
    for i in 0..50 {
        bench.queue(i, [10]);
        bench.batch(&mut fair);
    }
    bench.queue(0, [10; 300]);
    while bench.batch(&mut fair) > 0 {}
    assert_eq!(fair.shares.len(), 1);
    assert!(fair.at <= 1);
}

fn bounded(fair: &Fair, largest: usize) -> bool {
    let most = |share: &Share| fair.round.max(share.weight);
    let least = -fair.round - largest as i64;
    fair.shares.iter().all(|share| share.credit <= most(share) && share.credit > least)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever comes when: a batch leaves out what fits only of flows that owe a round, and credit and debts stay bounded.
    #[test]
    fn batches_are_full_and_deficits_bounded(
        weights in prop::collection::vec(1u32..1000, 1..6),
        arrivals in prop::collection::vec((0usize..6, prop::collection::vec(1usize..700, 1..20), 0usize..4), 1..30),
    ) {
        let (mut bench, mut fair) = (Bench::new(&weights), Fair::new(ROUND));
        let mut queued = 0;
        for (i, items, batches) in arrivals {
            queued += items.iter().sum::<usize>();
            bench.queue(i % weights.len(), items);
            for _ in 0..batches {
                let used = bench.batch(&mut fair);
                let fits = |queue: &VecDeque<usize>| queue.front().is_some_and(|item| used == 0 || used + item <= ROUND);
                let may = |name: &str| fair.shares.iter().any(|s| *s.name == *name && s.credit > -(ROUND as i64));
                prop_assert!(!bench.queues.iter().any(|(name, queue)| fits(queue) && may(name)));
                prop_assert!(bounded(&fair, 700));
            }
        }
        while bench.batch(&mut fair) > 0 {
            prop_assert!(bounded(&fair, 700));
        }
        prop_assert_eq!(bench.served.values().sum::<usize>(), queued);
    }

    /// Flows that always have work get tokens in proportion to their weights, whatever the sizes of their items.
    #[test]
    fn shares_are_proportional_under_saturation(
        flows in prop::collection::vec((1u32..9, 1usize..400), 2..7),
    ) {
        let weights: Vec<u32> = flows.iter().map(|(weight, _)| *weight).collect();
        let (mut bench, mut fair) = (Bench::new(&weights), Fair::new(ROUND));
        let total: usize = 400_000;
        for (i, (_, item)) in flows.iter().enumerate() {
            bench.queue(i, std::iter::repeat_n(*item, total / item));
        }
        // No queue runs empty before this.
        let mut served = 0;
        while served < total / 2 {
            served += bench.batch(&mut fair);
        }
        let all: u32 = weights.iter().sum();
        for (i, (weight, item)) in flows.iter().enumerate() {
            let due = served as f64 * f64::from(*weight) / f64::from(all);
            let off = (bench.served(i) as f64 - due).abs();
            // An item, and what was lent to fill a batch, relative to the shares of all.
            let (weight, all) = (f64::from(*weight), f64::from(all));
            let slack = 2.0 * (400.0 + 2.0 * ROUND as f64) * (1.0 + weight / all * flows.len() as f64);
            prop_assert!(off <= slack, "flow {} with items of {}: {} of {}", i, item, bench.served(i), due);
        }
    }
}
