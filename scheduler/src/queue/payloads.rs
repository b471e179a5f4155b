//! Accounts for the memory of pending requests' payloads.

use bytes::Bytes;

use super::request::PayloadSlot;
use super::state::Queue;
use crate::Decoded;

/// Maximum number of bytes of pending payloads in memory; further ones are read back when their requests can start.
pub(super) const HELD_BYTES: usize = 512 * 1024 * 1024;

/// Maximum number of bytes of payloads in memory with which payloads also stay in their decoded form.
const DECODED_BYTES: usize = 64 * 1024 * 1024;

impl Queue {
    /// Returns whether a payload of this size also stays in its decoded form.
    pub(crate) fn keeps_decoded(&self, bytes: usize) -> bool {
        self.held_bytes + bytes <= DECODED_BYTES
    }

    /// Keeps a payload in memory if the budget allows it.
    pub(super) fn hold_payload(&mut self, payload: Option<(Bytes, Decoded)>) -> PayloadSlot {
        match payload {
            Some((bytes, decoded)) if self.held_bytes + bytes.len() <= HELD_BYTES => {
                let decoded = if self.keeps_decoded(bytes.len()) { decoded } else { Decoded::default() };
                self.held_bytes += bytes.len();
                PayloadSlot::Held(bytes, decoded)
            }
            _ => PayloadSlot::Stored,
        }
    }

    /// Removes a payload's bytes from the account.
    pub(super) fn free_payload(&mut self, slot: &PayloadSlot) {
        if let PayloadSlot::Held(bytes, _) = slot {
            self.held_bytes = self.held_bytes.saturating_sub(bytes.len());
        }
    }
}
