//! Some ranks of a world, as a world of their own.

use std::ops::Range;
use std::sync::Arc;

use super::call::{Call, CollectiveError};
use super::payload::Payload;
use super::rank::Collective;

/// Ranks that follow each other. All ranks of the world make each call, every one with its own group and with the same extents:
/// it is one exchange of the world, in which nothing goes from one group to another.
pub(super) struct Group {
    world: Arc<dyn Collective>,
    ranks: Range<usize>,
}

impl Group {
    /// The group `ranks` of `world`, to which this rank belongs.
    pub(super) fn new(world: Arc<dyn Collective>, ranks: Range<usize>) -> Self {
        assert!(ranks.contains(&world.rank()) && ranks.end <= world.world(), "a group of this rank");
        Self { world, ranks }
    }
}

impl Collective for Group {
    fn rank(&self) -> usize {
        self.world.rank() - self.ranks.start
    }

    fn world(&self) -> usize {
        self.ranks.len()
    }

    fn exchange(&self, call: Call, parts: Vec<Payload>) -> Result<Vec<Payload>, CollectiveError> {
        let mut all = vec![Payload::from(Vec::<u8>::new()); self.world.world()];
        for (to, part) in all.iter_mut().skip(self.ranks.start).zip(parts) {
            *to = part;
        }
        let received = self.world.exchange(call, all)?;
        Ok(received.into_iter().skip(self.ranks.start).take(self.ranks.len()).collect())
    }
}
