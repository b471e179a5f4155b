//! Ranks that are threads of one process: parts change hands without a copy. A waiting rank polls for a moment before
//! it sleeps: ranks with equal work arrive within microseconds, and waking a thread takes longer.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, yield_now};
use std::time::{Duration, Instant};

use super::call::{Call, CollectiveError};
use super::payload::Payload;
use super::rank::Collective;

/// Polls before a waiting rank yields, where every rank has a processor; and before it sleeps.
const SPINS: usize = 4_000;
const YIELDS: usize = 200;

/// Returns `world` ranks of one process. A rank that waits longer than `limit` for another fails.
pub fn local_ranks(world: usize, limit: Duration) -> Vec<LocalRank> {
    let round = Round {
        posted: (0..world).map(|_| None).collect(),
        received: (0..world).map(|_| None).collect(),
        gone: vec![false; world],
        failure: None,
        sleepers: 0,
    };
    // Ranks that share processors would keep each other from work.
    let spins = if world <= available_parallelism().map_or(1, NonZeroUsize::get) { SPINS } else { 0 };
    let (round, changed, changes) = (Mutex::new(round), Condvar::new(), AtomicUsize::new(0));
    let meeting = Arc::new(Meeting { round, changed, changes, spins, world, limit });
    (0..world).map(|rank| LocalRank { rank, meeting: Arc::clone(&meeting) }).collect()
}

/// A rank that is a thread. When it is dropped, the other ranks' calls fail.
#[derive(Debug)]
pub struct LocalRank {
    rank: usize,
    meeting: Arc<Meeting>,
}

/// Meeting point of the ranks of a process.
#[derive(Debug)]
struct Meeting {
    round: Mutex<Round>,
    changed: Condvar,
    /// Number of changes to the round that somebody may wait for. It is written under the lock and polled without it.
    changes: AtomicUsize,
    spins: usize,
    world: usize,
    limit: Duration,
}

/// The exchanges under way, of all ranks or of groups of them. A rank posts for the next one only after it took what it
/// received, so when all members have posted, all of their former exchanges have been taken.
#[derive(Debug)]
struct Round {
    posted: Vec<Option<Posted>>,
    received: Vec<Option<Vec<Payload>>>,
    gone: Vec<bool>,
    failure: Option<CollectiveError>,
    /// Ranks that have stopped polling.
    sleepers: usize,
}

/// A call that ranks wait in.
#[derive(Debug)]
struct Posted {
    members: Vec<usize>,
    call: Call,
    /// Part of each member.
    parts: Vec<Payload>,
}

impl Posted {
    fn is_same(&self, other: &Self) -> bool {
        self.call == other.call && self.members == other.members
    }
}

impl Meeting {
    /// A thread that panicked while it held the lock left nothing half done: every change is a single assignment.
    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the waiting ranks after a change of the round.
    fn announce(&self, round: &Round) {
        // Release: a rank that sees the change takes the lock anyway; it must only not see it early.
        self.changes.fetch_add(1, Ordering::Release);
        if round.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Returns when the round may have changed, at the latest after `left` and a moment.
    fn wait<'a>(&'a self, round: MutexGuard<'a, Round>, left: Duration) -> MutexGuard<'a, Round> {
        let seen = self.changes.load(Ordering::Acquire);
        drop(round);
        for poll in 0..self.spins + YIELDS {
            if self.changes.load(Ordering::Acquire) != seen {
                return self.lock();
            }
            if poll < self.spins { std::hint::spin_loop() } else { yield_now() }
        }
        let mut round = self.lock();
        if self.changes.load(Ordering::Acquire) != seen {
            return round;
        }
        round.sleepers += 1;
        let mut round = self.changed.wait_timeout(round, left).unwrap_or_else(PoisonError::into_inner).0;
        round.sleepers -= 1;
        round
    }
}

impl Round {
    /// Why this call of `members` cannot succeed, as far as is known. Other ranks may have ended in good order.
    fn fault(&self, members: &[usize], call: &Call) -> Option<CollectiveError> {
        if self.failure.is_some() {
            return self.failure.clone();
        }
        let rank = members.iter().copied().find(|&rank| self.gone[rank] && self.posted[rank].is_none())?;
        let reason = "its thread ended".to_owned();
        Some(CollectiveError::Lost { rank, call: call.clone(), reason })
    }

    /// Hands all members their parts, once all have posted. Whether somebody need not wait any longer.
    fn deliver(&mut self, members: &[usize]) -> bool {
        let is_there = |rank: &usize| self.posted[*rank].as_ref().is_some_and(|posted| posted.members == members);
        if !members.iter().all(is_there) {
            // Each of them waits for another one then.
            if self.posted.iter().all(Option::is_some) {
                self.failure = self.mismatch(0);
            }
            return self.failure.is_some();
        }
        self.failure = members.first().and_then(|first| self.mismatch(*first));
        if self.failure.is_some() {
            return true;
        }
        let posted: Vec<_> = members.iter().filter_map(|rank| self.posted[*rank].take()).collect();
        for (at, rank) in members.iter().enumerate() {
            self.received[*rank] = Some(posted.iter().map(|posted| posted.parts[at].clone()).collect());
        }
        true
    }

    /// The first rank that is in another call than rank `other`, with which it should be in one.
    fn mismatch(&self, other: usize) -> Option<CollectiveError> {
        let expected = self.posted[other].as_ref()?;
        let theirs = expected.members.iter().filter_map(|rank| Some((*rank, self.posted[*rank].as_ref()?)));
        let (rank, theirs) = theirs.into_iter().find(|(_, theirs)| !theirs.is_same(expected))?;
        Some(CollectiveError::Mismatch { rank, theirs: theirs.call.clone(), other, call: expected.call.clone() })
    }
}

impl Collective for LocalRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.meeting.world
    }

    fn exchange_among(
        &self,
        members: &[usize],
        call: Call,
        parts: Vec<Payload>,
    ) -> Result<Vec<Payload>, CollectiveError> {
        assert_eq!(parts.len(), members.len(), "a part for each member");
        let meeting = &*self.meeting;
        let deadline = Instant::now() + meeting.limit;
        let mut round = meeting.lock();
        round.posted[self.rank] = Some(Posted { members: members.to_vec(), call: call.clone(), parts });
        if round.failure.is_none() && round.deliver(members) {
            meeting.announce(&round);
        }
        loop {
            if let Some(received) = round.received[self.rank].take() {
                return Ok(received);
            }
            if let Some(failure) = round.fault(members, &call) {
                round.failure = Some(failure.clone());
                meeting.announce(&round);
                return Err(failure);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let absent = members.iter().find(|rank| round.posted[**rank].is_none());
                let rank = absent.copied().unwrap_or(self.rank);
                round.failure = Some(CollectiveError::TimedOut { rank, call: call.clone(), limit: meeting.limit });
                continue;
            }
            round = meeting.wait(round, left);
        }
    }

    fn fail(&self, failure: CollectiveError) {
        let mut round = self.meeting.lock();
        // The first one is the cause.
        round.failure.get_or_insert(failure);
        self.meeting.announce(&round);
    }

    fn fault(&self) -> Option<CollectiveError> {
        let round = self.meeting.lock();
        let gone = || round.gone.iter().position(|gone| *gone);
        let ended = |rank| CollectiveError::Gone { rank, reason: "its thread ended".to_owned() };
        round.failure.clone().or_else(|| gone().map(ended))
    }
}

impl Drop for LocalRank {
    fn drop(&mut self) {
        let mut round = self.meeting.lock();
        round.gone[self.rank] = true;
        self.meeting.announce(&round);
    }
}
