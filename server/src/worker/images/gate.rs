//! The order in which images of requests are decoded, and the memory of those being decoded.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, TenantShare};

use super::fair_queue::FairQueue;
use super::undecoded::Undecoded;

/// Requests whose images wait to be decoded, and the bytes of decoded images until their requests end. Thousands of
/// samples may be ready at once: they wait here with their files instead of their pixels.
pub(in crate::worker) struct ImageGate {
    queue: FairQueue<Queued>,
    /// The next request, which waits for memory. Others wait behind it, so that large requests have their turn.
    next: Option<Queued>,
    held: BTreeMap<RequestId, u64>,
    memory: u64,
}

/// A request that waits.
pub(in crate::worker) struct Queued {
    pub(in crate::worker) request: RequestId,
    pub(in crate::worker) share: TenantShare,
    pub(in crate::worker) undecoded: Undecoded,
    bytes: u64,
}

impl ImageGate {
    /// Creates a gate for this many bytes of decoded images. A request above it is decoded when no other is held.
    pub(in crate::worker) fn new(memory: u64) -> Self {
        Self { queue: FairQueue::default(), next: None, held: BTreeMap::new(), memory }
    }

    /// Adds a request to its tenant's queue.
    pub(in crate::worker) fn push(&mut self, request: RequestId, share: TenantShare, undecoded: Undecoded) {
        let pixels = undecoded.pixels();
        let queued = Queued { request, share: share.clone(), undecoded, bytes: pixels.saturating_mul(3) };
        self.queue.push(&share, pixels, queued);
    }

    /// Takes the next request whose images fit. Those that nobody waits for are skipped.
    pub(in crate::worker) fn pop(&mut self, is_wanted: impl Fn(&RequestId) -> bool) -> Option<Queued> {
        loop {
            let next = match self.next.take() {
                Some(next) => next,
                None => self.queue.pop()?,
            };
            if !is_wanted(&next.request) {
                continue;
            }
            let used = self.held.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
            if !self.held.is_empty() && used.saturating_add(next.bytes) > self.memory {
                self.next = Some(next);
                return None;
            }
            self.held.insert(next.request.clone(), next.bytes);
            return Some(next);
        }
    }

    /// Frees the memory of requests that have ended.
    pub(in crate::worker) fn retain(&mut self, is_open: impl Fn(&RequestId) -> bool) {
        self.held.retain(|request, _| is_open(request));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_images::Size;

    use super::super::testing;
    use super::*;

    /// A request for an image of `rows` × 32 rows of 1,024 pixels.
    fn push(gate: &mut ImageGate, request: &str, tenant: &str, rows: u32) {
        let undecoded = testing::undecoded(request, vec![testing::image(1, Size::new(1024, 32 * rows))]);
        gate.push(RequestId::new(request), TenantShare::new(tenant), undecoded);
    }

    fn next(gate: &mut ImageGate) -> Option<String> {
        gate.pop(|_| true).map(|queued| queued.request.to_string())
    }

    #[test]
    fn decoded_images_take_memory_until_their_requests_end() {
        let row = 1024 * 32 * 3;
        let mut gate = ImageGate::new(3 * row);
        for (request, rows) in [("a", 2), ("b", 2), ("c", 1)] {
            push(&mut gate, request, "t", rows);
        }
        assert_eq!(next(&mut gate).unwrap(), "a");
        assert_eq!(next(&mut gate), None, "b does not fit beside a, and c waits behind it");
        gate.retain(|request| request.as_str() != "a");
        assert_eq!([next(&mut gate), next(&mut gate)], [Some("b".to_owned()), Some("c".to_owned())]);
        assert_eq!(next(&mut gate), None);
    }

    #[test]
    fn a_request_above_the_memory_goes_alone() {
        let mut gate = ImageGate::new(1);
        push(&mut gate, "a", "t", 9);
        push(&mut gate, "b", "t", 9);
        assert_eq!(next(&mut gate).unwrap(), "a");
        assert_eq!(next(&mut gate), None);
        gate.retain(|_| false);
        assert_eq!(next(&mut gate).unwrap(), "b");
    }

    #[test]
    fn cancelled_requests_are_skipped() {
        let mut gate = ImageGate::new(1);
        push(&mut gate, "a", "t", 1);
        push(&mut gate, "b", "t", 1);
        assert_eq!(gate.pop(|request| request.as_str() == "b").unwrap().request.as_str(), "b");
    }
}
