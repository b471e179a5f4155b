//! Progress of garbage collection through the requests that ended long ago.

use tokio::sync::{Mutex, MutexGuard};

use crate::store::ended_requests::Place;

/// Place behind which the next round continues; one round takes place at a time. Rows that must stay are read again only
/// after all others.
#[derive(Default)]
pub(crate) struct EndedGc(Mutex<Option<Place>>);

impl EndedGc {
    /// Starts a round, unless one is in progress.
    pub(super) fn start(&self) -> Option<MutexGuard<'_, Option<Place>>> {
        self.0.try_lock().ok()
    }
}
