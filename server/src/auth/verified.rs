//! Tokens whose signature was verified a short while ago; verifying a signature is the costly part.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::tokens::Accepted;

/// The time for which a signature counts. At every use it is checked whether the key was withdrawn.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Maximum number of tokens that are remembered.
const MOST: usize = 16_384;

type Digests = HashMap<[u8; 32], (Instant, Accepted)>;

/// Tokens that were verified, by their SHA-256.
#[derive(Default)]
pub(super) struct Verified(Mutex<Digests>);

impl Verified {
    pub(super) fn digest(token: &str) -> [u8; 32] {
        Sha256::digest(token.as_bytes()).into()
    }

    /// Returns the content of a token that was verified a short while ago. The caller must check that it has not
    /// expired.
    pub(super) fn get(&self, digest: &[u8; 32]) -> Option<Accepted> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).filter(|(since, _)| since.elapsed() < MAX_AGE).map(|(_, accepted)| accepted.clone())
    }

    pub(super) fn put(&self, digest: [u8; 32], accepted: Accepted) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (since, _)| since.elapsed() < MAX_AGE);
        }
        if known.len() < MOST {
            known.insert(digest, (Instant::now(), accepted));
        }
    }
}
