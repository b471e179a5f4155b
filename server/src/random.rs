//! Random bits as an argument.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Returns 64 random bits, for seeds that a client left open.
pub type Random = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Random bits from the operating system's entropy, through the standard library's keyed hasher.
pub fn system_random() -> Random {
    Arc::new(|| RandomState::new().hash_one(0_u8))
}
