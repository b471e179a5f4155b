//! Ranks that are threads of one process: parts change hands without a copy.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::call::{Call, CollectiveError};
use super::payload::Payload;
use super::rank::Collective;

/// `world` ranks of one process. A rank that waits longer than `limit` for another fails.
pub fn local_ranks(world: usize, limit: Duration) -> Vec<LocalRank> {
    let round = Round {
        posted: (0..world).map(|_| None).collect(),
        received: (0..world).map(|_| None).collect(),
        gone: vec![false; world],
        failure: None,
    };
    let meeting = Arc::new(Meeting { round: Mutex::new(round), changed: Condvar::new(), world, limit });
    (0..world).map(|rank| LocalRank { rank, meeting: Arc::clone(&meeting) }).collect()
}

/// A rank that is a thread. Dropping it is its end: the others' calls fail then.
#[derive(Debug)]
pub struct LocalRank {
    rank: usize,
    meeting: Arc<Meeting>,
}

/// Where the ranks of a process meet.
#[derive(Debug)]
struct Meeting {
    round: Mutex<Round>,
    changed: Condvar,
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
}

/// What a rank waits in.
#[derive(Debug)]
struct Posted {
    members: Vec<usize>,
    call: Call,
    /// For each member.
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
        let Meeting { changed, limit, .. } = &*self.meeting;
        let deadline = Instant::now() + *limit;
        let mut round = self.meeting.lock();
        round.posted[self.rank] = Some(Posted { members: members.to_vec(), call: call.clone(), parts });
        if round.failure.is_none() && round.deliver(members) {
            changed.notify_all();
        }
        loop {
            if let Some(received) = round.received[self.rank].take() {
                return Ok(received);
            }
            if let Some(failure) = round.fault(members, &call) {
                round.failure = Some(failure.clone());
                changed.notify_all();
                return Err(failure);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let absent = members.iter().find(|rank| round.posted[**rank].is_none());
                let rank = absent.copied().unwrap_or(self.rank);
                round.failure = Some(CollectiveError::TimedOut { rank, call: call.clone(), limit: *limit });
                continue;
            }
            round = changed.wait_timeout(round, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for LocalRank {
    fn drop(&mut self) {
        self.meeting.lock().gone[self.rank] = true;
        self.meeting.changed.notify_all();
    }
}
