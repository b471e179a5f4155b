//! Heartbeats of sessions, and the activity of clients, as this process knows them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trainyard_protocol::SessionId;

use crate::context::clock::Timestamp;
use crate::context::lock::lock;

/// Smallest age at which a session's recorded heartbeat is replaced.
const RESOLUTION: Duration = Duration::from_secs(10);
/// Maximum number of sessions whose recorded heartbeats are remembered.
const REMEMBERED: usize = 65_536;

/// Times of recorded heartbeats, and a count of requests.
#[derive(Default)]
pub(crate) struct SessionHeartbeats {
    recorded: Mutex<HashMap<SessionId, Timestamp>>,
    /// Number of requests that were accepted or ended here.
    activity: AtomicU64,
}

impl SessionHeartbeats {
    /// Returns whether a heartbeat at `now` must be recorded, because the last one is not recent. The caller must then
    /// record it.
    pub(crate) fn is_due(&self, session: &SessionId, now: Timestamp) -> bool {
        let mut recorded = lock(&self.recorded);
        if recorded.get(session).is_some_and(|last| now < last.plus(RESOLUTION)) {
            return false;
        }
        if recorded.len() >= REMEMBERED {
            recorded.clear();
        }
        recorded.insert(session.clone(), now);
        true
    }

    /// Counts a request that was accepted or ended.
    pub(crate) fn count_activity(&self) {
        self.activity.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that were accepted or ended.
    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::Relaxed)
    }
}
