//! Random bits that are passed as an argument, and secrets.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::sync::Arc;

/// Returns 64 random bits, for seeds that a client left open.
pub type Random = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Returns random bits from the operating system's entropy, through the standard library's keyed hasher.
pub fn system_random() -> Random {
    Arc::new(|| RandomState::new().hash_one(0_u8))
}

/// Returns unpredictable bytes from the operating system.
///
/// # Errors
/// Fails if the system has no random numbers.
pub fn secret_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
