//! Weighted deficit round-robin over flows (Shreedhar & Varghese 1995), counted in tokens.
//!
//! A round gives every flow with work credit in proportion to its weight, and ends when none of them has any left. A
//! flow is served while it has credit. It may overdraw: by its last item, and, up to a round, by places in a batch that
//! nobody with credit can use. What it owes comes off the next rounds, so that over time the shares are right although
//! items are whole and not everything fits into every batch.

use std::sync::Arc;

use trainyard_protocol::Flow;

/// The flows of one queue and what they have coming to them.
pub(super) struct Fair {
    /// Tokens that a round hands out: about a batch, so that every flow gets its part of each.
    round: i64,
    /// What a flow may owe by [`Fair::charge`].
    limit: i64,
    /// Credit of this round per unit of weight.
    quantum: i64,
    /// In the order of their turns.
    shares: Vec<Share>,
    /// Whose turn is next.
    at: usize,
}

struct Share {
    name: Arc<str>,
    weight: i64,
    credit: i64,
    has_work: bool,
}

impl Share {
    /// What a round gives.
    fn income(&self, quantum: i64) -> i64 {
        quantum * self.weight
    }

    /// Rounds until it has credit.
    fn rounds_to_credit(&self, credit: i64, quantum: i64) -> i64 {
        let income = self.income(quantum);
        if credit > 0 { 0 } else { (income - credit) / income }
    }
}

impl Fair {
    /// Shares that even out over about `round` tokens.
    pub(super) fn new(round: usize) -> Self {
        let round = signed(round.max(1));
        Self { round, limit: round, quantum: 0, shares: Vec::new(), at: 0 }
    }

    /// Remembers up to `limit` tokens of what flows get outside of [`Fair::fill`].
    pub(super) fn remembering(self, limit: usize) -> Self {
        Self { limit: signed(limit), ..self }
    }

    /// Fills a batch. `take` adds the next item of a flow to it and returns its tokens, or `None` when the flow has
    /// none that can be added. The flow that is asked first is the one whose turn it is: what it has must
    /// fit an empty batch. Flows with credit are asked in turn, then, in proportion to their weights, those that
    /// still have something to add and do not owe a round.
    pub(super) fn fill<'a>(
        &mut self,
        backlog: impl IntoIterator<Item = &'a Flow>,
        mut take: impl FnMut(&Arc<str>) -> Option<usize>,
    ) {
        self.settle(backlog);
        let (n, round, quantum) = (self.shares.len(), self.round, self.quantum);
        let turns = (0..n).map(|i| (self.at + i) % n);
        let mut open: Vec<usize> = turns.filter(|i| self.shares[*i].has_work).collect();
        let mut first = None;
        // Rounds to come whose credit this batch may use.
        let mut ahead = 0;
        while !open.is_empty() {
            open.retain(|i| {
                let share = &mut self.shares[*i];
                while share.credit + ahead * share.income(quantum) > 0 {
                    let Some(tokens) = (share.credit > -round).then(|| take(&share.name)).flatten() else {
                        return false;
                    };
                    first.get_or_insert(*i);
                    share.credit -= signed(tokens);
                }
                true
            });
            let rounds = open.iter().map(|i| {
                let share = &self.shares[*i];
                share.rounds_to_credit(share.credit + ahead * share.income(quantum), quantum)
            });
            ahead += rounds.min().unwrap_or(0);
        }
        if let Some(first) = first {
            self.at = (first + 1) % n;
        }
    }

    /// Counts what a flow got outside of [`Fair::fill`], up to a limit: what it got while nobody else wanted it is not
    /// held against it for long.
    pub(super) fn charge(&mut self, flow: &str, tokens: usize) {
        if let Some(share) = self.shares.iter_mut().find(|share| *share.name == *flow) {
            share.credit = (share.credit - signed(tokens)).max(share.credit.min(-self.limit));
        }
    }

    /// Takes notice of who has work, and begins the next round when nobody of them has credit.
    fn settle<'a>(&mut self, backlog: impl IntoIterator<Item = &'a Flow>) {
        self.shares.iter_mut().for_each(|share| share.has_work = false);
        for flow in backlog {
            let weight = i64::from(flow.weight.get());
            match self.shares.iter_mut().find(|share| share.name == flow.name) {
                Some(share) => (share.weight, share.has_work) = (weight, true),
                None => {
                    // It takes part in the round that is on, but not for more than a whole one.
                    let credit = (self.quantum * weight).min(self.round);
                    self.shares.push(Share { name: Arc::clone(&flow.name), weight, credit, has_work: true });
                }
            }
        }
        if !self.shares.iter().any(|share| share.has_work && share.credit > 0) {
            self.next_round();
        }
    }

    /// As many rounds as it takes until a flow with work has credit. Of flows without work those are forgotten
    /// that owe nothing.
    fn next_round(&mut self) {
        let working = || self.shares.iter().filter(|share| share.has_work);
        let weights: i64 = working().map(|share| share.weight).sum();
        if weights == 0 {
            return;
        }
        let quantum = (self.round / weights).max(1);
        let rounds = working().map(|share| share.rounds_to_credit(share.credit, quantum)).min().unwrap_or(0);
        let before = self.shares.iter().take(self.at).filter(|share| share.is_over(rounds, quantum)).count();
        self.at -= before;
        self.shares.retain(|share| !share.is_over(rounds, quantum));
        self.shares.iter_mut().for_each(|share| share.credit += rounds * share.income(quantum));
        self.quantum = quantum;
    }
}

impl Share {
    /// Whether it has no work and, after some rounds, no debts.
    fn is_over(&self, rounds: i64, quantum: i64) -> bool {
        !self.has_work && self.credit + rounds * self.income(quantum) >= 0
    }
}

/// Far from overflow also after multiplication with weights.
fn signed(tokens: usize) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX).min(1 << 40)
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod tests;
