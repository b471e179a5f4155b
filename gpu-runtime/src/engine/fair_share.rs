//! Weighted deficit round-robin over tenants (Shreedhar & Varghese 1995), counted in tokens.
//!
//! A round grants every backlogged tenant credit in proportion to its weight, and ends when none of them has credit. A
//! tenant is served while it has credit. Its credit may become negative: by its last item, and by up to one round to
//! fill capacity of a batch that no tenant with credit can use. The deficit is deducted from the next rounds, so that
//! long-run shares are proportional to weights although items are indivisible and do not fit into every batch.

use std::sync::Arc;

use trainyard_protocol::TenantShare;

/// A fair-share scheduler for one queue: the credit of each tenant.
pub(super) struct FairShare {
    /// Tokens that a round grants in total: about one batch, so that every tenant gets its share of each.
    round: i64,
    /// Largest deficit that [`FairShare::charge`] records.
    max_deficit: i64,
    /// Credit of the current round per unit of weight.
    quantum: i64,
    /// Accounts of tenants in round-robin order.
    accounts: Vec<Account>,
    /// Index of the account that is served first in the next batch.
    next: usize,
}

struct Account {
    tenant: Arc<str>,
    weight: i64,
    /// Tokens; negative is a deficit.
    credit: i64,
    has_work: bool,
}

impl Account {
    fn credit_per_round(&self, quantum: i64) -> i64 {
        quantum * self.weight
    }

    /// Rounds until `credit` is positive.
    fn rounds_to_credit(&self, credit: i64, quantum: i64) -> i64 {
        let granted = self.credit_per_round(quantum);
        if credit > 0 { 0 } else { (granted - credit) / granted }
    }

    /// Whether it has no work and, after `rounds` rounds, no deficit.
    fn is_settled(&self, rounds: i64, quantum: i64) -> bool {
        !self.has_work && self.credit + rounds * self.credit_per_round(quantum) >= 0
    }
}

impl FairShare {
    /// A scheduler whose shares even out over about `round` tokens.
    pub(super) fn new(round: usize) -> Self {
        let round = signed(round.max(1));
        Self { round, max_deficit: round, quantum: 0, accounts: Vec::new(), next: 0 }
    }

    /// Limits the deficit that [`FairShare::charge`] records to `tokens`, instead of one round.
    pub(super) fn with_max_deficit(self, tokens: usize) -> Self {
        Self { max_deficit: signed(tokens), ..self }
    }

    /// Fills a batch. `take` adds the next item of a tenant to it and returns its tokens, or `None` when the tenant has
    /// no item that can be added. The first call is for the tenant whose turn it is: its item must fit an empty batch.
    /// Tenants with credit are served round-robin, then, in proportion to their weights, those that still have items to
    /// add and a deficit below one round.
    pub(super) fn fill<'a>(
        &mut self,
        backlog: impl IntoIterator<Item = &'a TenantShare>,
        mut take: impl FnMut(&Arc<str>) -> Option<usize>,
    ) {
        self.update_backlog(backlog);
        let (n, round, quantum) = (self.accounts.len(), self.round, self.quantum);
        let order = (0..n).map(|i| (self.next + i) % n);
        let mut open: Vec<usize> = order.filter(|i| self.accounts[*i].has_work).collect();
        let mut first = None;
        // Future rounds whose credit this batch may use.
        let mut borrowed = 0;
        while !open.is_empty() {
            open.retain(|i| {
                let account = &mut self.accounts[*i];
                while account.credit + borrowed * account.credit_per_round(quantum) > 0 {
                    let Some(tokens) = (account.credit > -round).then(|| take(&account.tenant)).flatten() else {
                        return false;
                    };
                    first.get_or_insert(*i);
                    account.credit -= signed(tokens);
                }
                true
            });
            let rounds = open.iter().map(|i| {
                let account = &self.accounts[*i];
                account.rounds_to_credit(account.credit + borrowed * account.credit_per_round(quantum), quantum)
            });
            borrowed += rounds.min().unwrap_or(0);
        }
        if let Some(first) = first {
            self.next = (first + 1) % n;
        }
    }

    /// Deducts tokens that a tenant got outside of [`FairShare::fill`]. The deficit is limited: use of capacity that no
    /// other tenant wanted is not deducted for long.
    pub(super) fn charge(&mut self, tenant: &str, tokens: usize) {
        if let Some(account) = self.accounts.iter_mut().find(|account| *account.tenant == *tenant) {
            account.credit = (account.credit - signed(tokens)).max(account.credit.min(-self.max_deficit));
        }
    }

    /// Marks the tenants that have work, and begins the next round when none of them has credit.
    fn update_backlog<'a>(&mut self, backlog: impl IntoIterator<Item = &'a TenantShare>) {
        self.accounts.iter_mut().for_each(|account| account.has_work = false);
        for share in backlog {
            let weight = i64::from(share.weight.get());
            match self.accounts.iter_mut().find(|account| account.tenant == share.name) {
                Some(account) => (account.weight, account.has_work) = (weight, true),
                None => {
                    // A new tenant joins the current round with the credit of one round at most.
                    let credit = (self.quantum * weight).min(self.round);
                    self.accounts.push(Account { tenant: Arc::clone(&share.name), weight, credit, has_work: true });
                }
            }
        }
        if !self.accounts.iter().any(|account| account.has_work && account.credit > 0) {
            self.next_round();
        }
    }

    /// Grants as many rounds as it takes until a backlogged tenant has credit. Accounts without work and deficit are
    /// removed.
    fn next_round(&mut self) {
        let backlogged = || self.accounts.iter().filter(|account| account.has_work);
        let weights: i64 = backlogged().map(|account| account.weight).sum();
        if weights == 0 {
            return;
        }
        let quantum = (self.round / weights).max(1);
        let rounds = backlogged().map(|account| account.rounds_to_credit(account.credit, quantum)).min().unwrap_or(0);
        let removed = self.accounts.iter().take(self.next).filter(|account| account.is_settled(rounds, quantum));
        self.next -= removed.count();
        self.accounts.retain(|account| !account.is_settled(rounds, quantum));
        self.accounts.iter_mut().for_each(|account| account.credit += rounds * account.credit_per_round(quantum));
        self.quantum = quantum;
    }
}

/// `tokens` as a signed count, clamped so that multiplication with weights cannot overflow.
fn signed(tokens: usize) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX).min(1 << 40)
}

#[cfg(test)]
#[path = "fair_share_tests.rs"]
mod tests;
