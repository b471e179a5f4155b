//! Waits for a device whose work may depend on other ranks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::{CudaError, Result};

/// How long a wait for a device with other ranks lasts at most, unless it is configured: longer than any pass takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// How long [`wait_for_peers`] sleeps between two looks at the device, and how often it asks for other ranks.
const PAUSE: Duration = Duration::from_micros(50);
const ASK: Duration = Duration::from_millis(100);

/// Ranks that work on a device may wait for.
pub(crate) trait Peers: Send + Sync {
    /// Returns the error that the ranks' collectives report, if there is one.
    fn fault(&self) -> Result;

    /// Whether they are known to have ended otherwise.
    fn lost(&self) -> Result;

    /// How long a wait for the device lasts at most.
    fn limit(&self) -> Duration;

    /// The collective that was started last, for errors.
    fn last(&self) -> &'static str;

    /// Tells them that this rank cannot go on.
    fn leave(&self, reason: &str);
}

/// Waits until a device is idle, or until it never will be because a rank is missing.
pub(super) fn wait_for_peers(peers: &[Arc<dyn Peers>], is_idle: impl Fn() -> Result<bool>) -> Result {
    let (began, mut asked) = (Instant::now(), Instant::now());
    let limit = peers.iter().map(|peers| peers.limit()).min().unwrap_or(LIMIT);
    loop {
        let idle = is_idle();
        // What a kernel reads after a failed collective was never written: the cause comes first.
        peers.iter().try_for_each(|peers| peers.fault())?;
        if idle? {
            return Ok(());
        }
        if asked.elapsed() > ASK {
            peers.iter().try_for_each(|peers| peers.lost())?;
            asked = Instant::now();
        }
        if began.elapsed() > limit {
            let message = format!("not finished after {} s: a rank is missing, or a device hangs", limit.as_secs_f64());
            // It may be waited for in any of the communicators.
            let mut calls: Vec<_> = peers.iter().map(|peers| peers.last()).collect();
            calls.dedup();
            let (call, message) = match calls[..] {
                [call] => (call, message),
                _ => ("a collective", format!("{message}; begun last: {}", calls.join(", "))),
            };
            return Err(CudaError::Collective { call, message });
        }
        std::thread::sleep(PAUSE);
    }
}
