//! Sessions that have ended and whose requests are being cancelled, a batch at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use trainyard_protocol::{RequestId, SessionId};

use crate::context::lock::lock;
use crate::queue::Fence;

/// Maximum number of sessions of one batch.
const SESSIONS: usize = 64;

/// The sessions whose requests are being cancelled. One batch is written at a time, so that other writes come between.
#[derive(Default)]
pub(crate) struct Cancellations(Mutex<State>);

#[derive(Default)]
struct State {
    sessions: BTreeMap<SessionId, Leftover>,
    /// The order in which sessions take turns.
    turns: VecDeque<SessionId>,
    /// Whether a batch is with the writer.
    writing: bool,
}

/// What is left to do for a session.
#[derive(Default)]
struct Leftover {
    /// Requests of runs that this process's worker took out of its queue: they are ended under its leases.
    requests: VecDeque<(RequestId, Fence)>,
    /// Samples that the worker dropped, with their claims. If the session is revived, they are released.
    claims: Vec<(RequestId, i64)>,
    /// Whether something was added since the present batch began.
    fresh: bool,
}

/// A session's part of a batch.
pub(crate) struct SessionPart {
    pub(crate) session: SessionId,
    /// Requests of this worker's runs, at most as many as a batch has.
    pub(crate) requests: Vec<(RequestId, Fence)>,
}

/// Result of a batch for a session.
pub(crate) struct PartDone {
    pub(crate) session: SessionId,
    /// Number of requests of this worker's runs that were handled.
    pub(crate) handled: usize,
    pub(crate) state: PartState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartState {
    /// Requests may be left.
    More,
    /// No request is left.
    Complete,
    /// The session is active again: its other requests are executed.
    Revived,
}

/// What a worker had of a session that was revived while its requests were being cancelled.
#[derive(Default)]
pub(crate) struct Reinstated {
    pub(crate) requests: Vec<(RequestId, Fence)>,
    pub(crate) claims: Vec<(RequestId, i64)>,
}

impl Cancellations {
    /// Adds a session that has ended, with its requests that this process's worker had in its queue. Returns whether a
    /// batch must be written now.
    pub(crate) fn add(&self, session: &SessionId, requests: Vec<(RequestId, Fence)>) -> bool {
        let mut state = lock(&self.0);
        if !state.sessions.contains_key(session) {
            state.turns.push_back(session.clone());
        }
        let leftover = state.sessions.entry(session.clone()).or_default();
        leftover.fresh = true;
        for (request, fence) in requests {
            match fence {
                Fence::Sample(claim) => leftover.claims.push((request, claim)),
                fence @ Fence::Run(..) => leftover.requests.push_back((request, fence)),
            }
        }
        !std::mem::replace(&mut state.writing, true)
    }

    /// Returns the sessions of the next batch of `most` requests, in turn. The first is last next time.
    pub(crate) fn next(&self, most: usize) -> Vec<SessionPart> {
        let mut state = lock(&self.0);
        let turns: Vec<SessionId> = state.turns.iter().take(SESSIONS).cloned().collect();
        if !state.turns.is_empty() {
            state.turns.rotate_left(1);
        }
        let part = |session: SessionId| {
            let leftover = state.sessions.get_mut(&session)?;
            leftover.fresh = false;
            let requests = leftover.requests.iter().take(most).cloned().collect();
            Some(SessionPart { session, requests })
        };
        turns.into_iter().filter_map(part).collect()
    }

    /// Records a batch. Returns what revived sessions get back, and whether another batch must be written.
    pub(crate) fn advance(&self, parts: &[PartDone]) -> (Reinstated, bool) {
        let mut state = lock(&self.0);
        let mut back = Reinstated::default();
        for PartDone { session, handled, state: done } in parts {
            let Some(leftover) = state.sessions.get_mut(session) else { continue };
            leftover.requests.drain(..(*handled).min(leftover.requests.len()));
            if *done == PartState::Revived {
                back.requests.extend(leftover.requests.drain(..));
                back.claims.append(&mut leftover.claims);
            }
            if *done != PartState::More && leftover.requests.is_empty() && !leftover.fresh {
                state.sessions.remove(session);
                state.turns.retain(|other| other != session);
            }
        }
        state.writing = !state.turns.is_empty();
        (back, state.writing)
    }

    /// Whether a batch is with the writer.
    #[cfg(test)]
    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.0).writing
    }

    /// Forgets everything, because the database refuses a batch, and returns what the worker had. The sessions' ends are
    /// stored: maintenance finds what is left to cancel.
    pub(crate) fn give_up(&self) -> Reinstated {
        let State { sessions, .. } = std::mem::take(&mut *lock(&self.0));
        let mut back = Reinstated::default();
        for mut leftover in sessions.into_values() {
            back.requests.extend(leftover.requests);
            back.claims.append(&mut leftover.claims);
        }
        back
    }
}

#[cfg(test)]
mod tests {
    use trainyard_protocol::RunId;

    use super::*;

    fn request(number: usize) -> RequestId {
        RequestId::new(number.to_string())
    }

    fn of_run(numbers: std::ops::Range<usize>) -> Vec<(RequestId, Fence)> {
        numbers.map(|number| (request(number), Fence::Run(RunId::new("r"), 1))).collect()
    }

    fn done(session: &str, handled: usize, state: PartState) -> PartDone {
        PartDone { session: SessionId::new(session), handled, state }
    }

    fn names(parts: &[SessionPart]) -> Vec<(&str, usize)> {
        parts.iter().map(|part| (part.session.as_str(), part.requests.len())).collect()
    }

    #[test]
    fn sessions_take_turns_until_they_are_complete() {
        let all = Cancellations::default();
        assert!(all.add(&SessionId::new("a"), of_run(0..5)));
        assert!(!all.add(&SessionId::new("b"), vec![]), "one batch at a time");
        assert_eq!(names(&all.next(3)), [("a", 3), ("b", 0)]);
        let parts = [done("a", 3, PartState::More), done("b", 0, PartState::More)];
        assert!(all.advance(&parts).1);
        assert_eq!(names(&all.next(3)), [("b", 0), ("a", 2)]);
        let parts = [done("b", 0, PartState::Complete), done("a", 2, PartState::Complete)];
        assert!(!all.advance(&parts).1);
        assert!(all.add(&SessionId::new("b"), vec![]), "another batch begins");
    }

    #[test]
    fn what_is_added_during_a_batch_is_in_the_next() {
        let all = Cancellations::default();
        all.add(&SessionId::new("a"), of_run(0..1));
        all.next(3);
        all.add(&SessionId::new("a"), vec![(request(7), Fence::Sample(1))]);
        assert!(all.advance(&[done("a", 1, PartState::Complete)]).1);
        assert_eq!(names(&all.next(3)), [("a", 0)]);
        let (back, more) = all.advance(&[done("a", 0, PartState::Revived)]);
        assert_eq!((back.claims, back.requests.len(), more), (vec![(request(7), 1)], 0, false));
    }

    #[test]
    fn a_revived_session_gets_back_what_was_not_cancelled() {
        let all = Cancellations::default();
        all.add(&SessionId::new("a"), of_run(0..4));
        all.next(2);
        let (back, more) = all.advance(&[done("a", 1, PartState::Revived)]);
        let ids: Vec<_> = back.requests.into_iter().map(|(request, _)| request).collect();
        assert_eq!((ids, more), (vec![request(1), request(2), request(3)], false));
    }
}
