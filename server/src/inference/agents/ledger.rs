//! The parts of agent sessions' limits that running requests of this process have reserved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trainyard_protocol::AgentSessionId;

/// Number of turns and of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) turns: u64,
    pub(crate) tokens: u64,
}

type Reserved = BTreeMap<AgentSessionId, Amount>;

/// The reservations of all sessions. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Reserved>>);

/// The reservation of a request, which ends when this is dropped.
pub(crate) struct Reservation {
    ledger: Ledger,
    session: AgentSessionId,
    own: Amount,
}

impl Ledger {
    /// Reserves turns of a session.
    pub(crate) fn reserve(&self, session: &AgentSessionId, turns: u64) -> Reservation {
        let own = Amount { turns, tokens: 0 };
        self.lock().entry(session.clone()).or_default().turns += turns;
        Reservation { ledger: self.clone(), session: session.clone(), own }
    }

    fn lock(&self) -> MutexGuard<'_, Reserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// What all requests of the session have reserved, with this one.
    pub(crate) fn all(&self) -> Amount {
        self.ledger.lock().get(&self.session).copied().unwrap_or_default()
    }

    /// Reserves up to `wanted` tokens of those that `free` grants, given what all requests have reserved. Returns the
    /// number of tokens.
    pub(crate) fn take_tokens(&mut self, wanted: u64, free: impl FnOnce(Amount) -> u64) -> u64 {
        let mut reserved = self.ledger.lock();
        let all = reserved.entry(self.session.clone()).or_default();
        let taken = wanted.min(free(*all));
        all.tokens += taken;
        self.own.tokens += taken;
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.ledger.lock();
        let Some(all) = reserved.get_mut(&self.session) else { return };
        all.turns = all.turns.saturating_sub(self.own.turns);
        all.tokens = all.tokens.saturating_sub(self.own.tokens);
        if *all == Amount::default() {
            reserved.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_running_requests_reserve_ends_with_them() {
        let (ledger, id) = (Ledger::default(), AgentSessionId::new("a"));
        let mut first = ledger.reserve(&id, 2);
        assert_eq!(first.take_tokens(7, |all| 10 - all.tokens), 7);
        let mut second = ledger.reserve(&id, 1);
        assert_eq!(second.take_tokens(7, |all| 10 - all.tokens), 3);
        assert_eq!(second.all(), Amount { turns: 3, tokens: 10 });
        drop(first);
        assert_eq!(second.all(), Amount { turns: 1, tokens: 3 });
        drop(second);
        assert!(ledger.lock().is_empty());
    }
}
