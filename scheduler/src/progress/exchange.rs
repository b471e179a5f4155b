//! Progress of samples: watches here, and tokens for other processes.

use std::collections::BTreeMap;

use tokio::sync::mpsc::UnboundedReceiver;
use trainyard_protocol::{RequestId, SampleProgress};

use super::outbox::ProgressOutbox;
use super::watches::{ProgressWatches, WatchedSample};
use crate::Timestamp;
use crate::context::wakeup::Wakeup;

/// Watched samples, and tokens that wait to be sent to other processes.
#[derive(Default)]
pub(crate) struct Progress {
    watches: ProgressWatches,
    outbox: ProgressOutbox,
    /// Wakes the task that sends and requests tokens.
    due: Wakeup,
}

impl Progress {
    /// Watches a sample. Returns the watcher's number and its tokens, each once and in order within its sequence.
    pub(crate) fn watch(&self, request: &RequestId) -> (u64, UnboundedReceiver<SampleProgress>) {
        let watcher = self.watches.watch(request);
        self.due.wake();
        watcher
    }

    /// Ends a watcher's watch.
    pub(crate) fn unwatch(&self, request: &RequestId, number: u64) {
        self.watches.unwatch(request, number);
    }

    /// Records that another process watches a sample until the given time, and lacks all tokens if `from_start`.
    pub(crate) fn watch_for(&self, request: RequestId, process: String, until: Timestamp, from_start: bool) {
        self.watches.watch_for(request, process, until, from_start);
    }

    /// Returns the watched samples.
    pub(crate) fn watched(&self, now: Timestamp) -> Vec<WatchedSample> {
        self.watches.watched(now)
    }

    /// Passes tokens that are produced here on to the watchers of the sample, here and in other processes.
    pub(crate) fn report(&self, request: &RequestId, progress: &[SampleProgress]) {
        for process in self.deliver(request, progress) {
            self.outbox.push(process, request, progress);
            self.due.wake();
        }
    }

    /// Passes tokens on to the watchers of the sample here, and requests those that are missing before them. Returns
    /// the other processes that watch the sample.
    pub(crate) fn deliver(&self, request: &RequestId, progress: &[SampleProgress]) -> Vec<String> {
        let (others, whole) = self.watches.deliver(request, progress);
        if !whole {
            self.due.wake();
        }
        others
    }

    /// Takes the samples watched here, each with whether other processes must be asked for all its tokens; with `news`,
    /// only those for which they must. The caller must then ask.
    pub(crate) fn take_announcements(&self, news: bool) -> Vec<(RequestId, bool)> {
        self.watches.announcements(news)
    }

    /// Takes the tokens for other processes, by process.
    pub(crate) fn take_waiting(&self) -> BTreeMap<String, Vec<(RequestId, SampleProgress)>> {
        self.outbox.take()
    }

    /// Requests all tokens with the next round, because notifications may have been missed.
    pub(crate) fn suspect_gaps(&self) {
        self.watches.suspect_gaps();
    }

    /// Requests all tokens at once, because notifications may have been missed.
    pub(crate) fn request_again(&self) {
        self.suspect_gaps();
        self.due.wake();
    }

    /// Returns the wakeup of the task that sends and requests tokens.
    pub(crate) fn wakeup(&self) -> Wakeup {
        self.due.clone()
    }
}
