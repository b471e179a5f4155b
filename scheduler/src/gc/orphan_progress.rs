//! Progress of garbage collection through the storage.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use crate::Timestamp;

/// Interval between two collections.
const PERIOD: Duration = Duration::from_secs(600);

/// Progress of the collections, of which one takes place at a time.
#[derive(Default)]
pub(crate) struct OrphanGc(Mutex<OrphanGcProgress>);

#[derive(Default)]
pub(super) struct OrphanGcProgress {
    /// Time of the last collection.
    last: Option<Timestamp>,
    /// Position to continue at, by the area's root; absent where an area starts over.
    cursors: BTreeMap<&'static str, String>,
}

impl OrphanGc {
    /// Starts a collection, unless one is in progress or the last one was recent.
    pub(super) fn start(&self, now: Timestamp) -> Option<MutexGuard<'_, OrphanGcProgress>> {
        let mut progress = self.0.try_lock().ok()?;
        if progress.last.is_some_and(|last| now < last.plus(PERIOD)) {
            return None;
        }
        progress.last = Some(now);
        Some(progress)
    }
}

impl OrphanGcProgress {
    /// Takes the position to continue at in an area.
    pub(super) fn take_cursor(&mut self, root: &'static str) -> Option<String> {
        self.cursors.remove(root)
    }

    /// Sets the position at which the next collection continues; `None` starts over.
    pub(super) fn set_cursor(&mut self, root: &'static str, next: Option<String>) {
        self.cursors.extend(next.map(|next| (root, next)));
    }
}
