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

/// The exchange under way. A rank posts for the next one only after it took what it received, so when all have posted, all
/// of the former exchange has been taken.
#[derive(Debug)]
struct Round {
    posted: Vec<Option<(Call, Vec<Payload>)>>,
    received: Vec<Option<Vec<Payload>>>,
    gone: Vec<bool>,
    failure: Option<CollectiveError>,
}

impl Meeting {
    /// A thread that panicked while it held the lock left nothing half done: every change is a single assignment.
    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Round {
    /// Why this call cannot succeed, as far as is known.
    fn fault(&self, call: &Call) -> Option<CollectiveError> {
        if self.failure.is_some() {
            return self.failure.clone();
        }
        let rank = (0..self.gone.len()).find(|&rank| self.gone[rank] && self.posted[rank].is_none())?;
        let reason = "its thread ended".to_owned();
        Some(CollectiveError::Lost { rank, call: call.clone(), reason })
    }

    /// Hands every rank its parts, once all have posted.
    fn deliver(&mut self) {
        let posted: Vec<_> = self.posted.iter_mut().filter_map(Option::take).collect();
        let (first, _) = &posted[0];
        if let Some(rank) = posted.iter().position(|(call, _)| call != first) {
            let (theirs, call) = (posted[rank].0.clone(), first.clone());
            self.failure = Some(CollectiveError::Mismatch { rank, theirs, other: 0, call });
            return;
        }
        for (rank, received) in self.received.iter_mut().enumerate() {
            *received = Some(posted.iter().map(|(_, parts)| parts[rank].clone()).collect());
        }
    }
}

impl Collective for LocalRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.meeting.world
    }

    fn exchange(&self, call: Call, parts: Vec<Payload>) -> Result<Vec<Payload>, CollectiveError> {
        assert_eq!(parts.len(), self.meeting.world, "a part for each rank");
        let Meeting { changed, limit, .. } = &*self.meeting;
        let deadline = Instant::now() + *limit;
        let mut round = self.meeting.lock();
        round.posted[self.rank] = Some((call.clone(), parts));
        if round.posted.iter().all(Option::is_some) && round.failure.is_none() {
            round.deliver();
            changed.notify_all();
        }
        loop {
            if let Some(received) = round.received[self.rank].take() {
                return Ok(received);
            }
            if let Some(failure) = round.fault(&call) {
                round.failure = Some(failure.clone());
                changed.notify_all();
                return Err(failure);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let rank = round.posted.iter().position(Option::is_none).unwrap_or(self.rank);
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
