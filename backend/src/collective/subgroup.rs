//! A group of ranks as a world of its own.

use std::sync::Arc;

use super::call::{Call, CollectiveError};
use super::payload::Payload;
use super::rank::Collective;

/// Ranks that exchange among themselves. They count from 0 in the order of their numbers in the whole; errors that a
/// transport reports name them by the latter.
pub(super) struct Subgroup {
    whole: Arc<dyn Collective>,
    members: Vec<usize>,
    rank: usize,
}

impl Subgroup {
    /// Makes a group; `members` are in ascending order.
    ///
    /// # Panics
    /// If this rank is not a member.
    pub(super) fn new(whole: Arc<dyn Collective>, members: Vec<usize>) -> Self {
        let own = whole.rank();
        assert!(members.contains(&own), "rank {own} is one of {members:?}");
        let rank = members.partition_point(|member| *member < own);
        Self { whole, members, rank }
    }
}

impl Collective for Subgroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.members.len()
    }

    fn exchange_among(
        &self,
        members: &[usize],
        call: Call,
        parts: Vec<Payload>,
    ) -> Result<Vec<Payload>, CollectiveError> {
        let members: Vec<usize> = members.iter().map(|member| self.members[*member]).collect();
        self.whole.exchange_among(&members, call, parts)
    }

    fn fail(&self, failure: CollectiveError) {
        self.whole.fail(failure);
    }

    fn fault(&self) -> Option<CollectiveError> {
        self.whole.fault()
    }
}
