//! A memory budget for bodies, split by their size.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Bodies up to this size have a part of the budget that larger ones can't take.
pub(super) const SMALL: usize = 1 << 20;
/// Small bodies get 1/`SMALL_PART` of the budget.
const SMALL_PART: usize = 4;

/// Bytes of one permit.
pub(crate) const UNIT: usize = 1 << 10;

/// The parts of a budget: one that only small bodies use, and the rest.
pub(crate) struct Parts {
    pub(crate) small: Part,
    pub(crate) large: Part,
}

impl Parts {
    pub(crate) fn new(bytes: usize) -> Self {
        let small = bytes / SMALL_PART;
        Self { small: Part::new(small), large: Part::new(bytes - small) }
    }

    /// Changes the permits of a body from those of `before` bytes to those of `bytes`. Waits in order of arrival;
    /// `None` when that takes too long.
    pub(super) async fn grow(
        &self,
        held: &mut Option<OwnedSemaphorePermit>,
        before: usize,
        bytes: usize,
        deadline: Instant,
    ) -> Option<()> {
        let part = if bytes <= SMALL { &self.small } else { &self.large };
        let same = (before <= SMALL) == (bytes <= SMALL);
        let had = held.as_ref().filter(|_| same).map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(part.permits_of(bytes).saturating_sub(had)).unwrap_or(u32::MAX);
        // It is never closed.
        let permit = timeout_at(deadline, Arc::clone(&part.permits).acquire_many_owned(more)).await.ok()?.ok()?;
        match held {
            Some(held) if same => held.merge(permit),
            held => *held = Some(permit),
        }
        Some(())
    }
}

pub(crate) struct Part {
    pub(crate) permits: Arc<Semaphore>,
    capacity: usize,
}

impl Part {
    fn new(bytes: usize) -> Self {
        let capacity = (bytes / UNIT).clamp(1, u32::MAX as usize);
        Self { permits: Arc::new(Semaphore::new(capacity)), capacity }
    }

    /// Returns the permits of a body, at most all there are.
    fn permits_of(&self, bytes: usize) -> usize {
        bytes.div_ceil(UNIT).min(self.capacity)
    }
}
