//! The memory of bodies while they are decompressed and decoded.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Bodies up to this size are decoded where they are read.
pub(crate) const INLINE_DECODING: usize = 1 << 20;

/// Bytes that all bodies may take together while they are decompressed and decoded; further ones wait.
const DECODING: usize = 512 << 20;

/// The memory that a body of many small parts may take when it is decoded, however short it is.
const PARTS: usize = 64 << 20;

/// Bytes of one permit.
const UNIT: usize = 1 << 10;

/// Memory budget of the bodies that are being decoded. Cheap to clone; all clones share it.
#[derive(Clone)]
pub(crate) struct DecodingBudget(Arc<Semaphore>);

impl Default for DecodingBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(DECODING / UNIT)))
    }
}

impl DecodingBudget {
    /// Counts the free permits.
    #[cfg(test)]
    pub(crate) fn available(&self) -> usize {
        self.0.available_permits()
    }

    /// Returns the permits of a body, at most all there are. Small bodies need none; they are decoded where they are
    /// read, so there are at most as many at a time as threads.
    fn permits(bytes: usize) -> usize {
        if bytes <= INLINE_DECODING { 0 } else { bytes.saturating_add(PARTS).min(DECODING).div_ceil(UNIT) }
    }

    /// Waits, in order of arrival, until a body of at most this size may be decoded.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reservation, ApiError> {
        let permits = u32::try_from(Self::permits(bytes)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).acquire_many_owned(permits).await;
        permit
            .map(Reservation)
            .map_err(|error| ApiError::Internal(format!("the decoder of bodies has stopped: {error}")))
    }
}

/// The part of the budget that a body holds.
pub(crate) struct Reservation(OwnedSemaphorePermit);

impl Reservation {
    /// Releases the permits that a body of this size does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let spare = self.0.num_permits().saturating_sub(DecodingBudget::permits(bytes));
        drop(self.0.split(spare));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[tokio::test]
    async fn bodies_wait_for_room_and_none_for_ever() {
        let budget = DecodingBudget::default();
        let whole = budget.reserve(usize::MAX).await.unwrap();
        let small = budget.reserve(INLINE_DECODING).await.unwrap();
        assert_eq!((whole.0.num_permits(), small.0.num_permits()), (DECODING / UNIT, 0));
        let second = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(2 << 20).await }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(whole);
        let mut second = second.await.unwrap().unwrap();
        assert_eq!(second.0.num_permits(), (PARTS + (2 << 20)) / UNIT);
        second.shrink(10);
        assert_eq!(budget.0.available_permits(), DECODING / UNIT);
    }
}
