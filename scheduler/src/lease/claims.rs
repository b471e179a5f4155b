//! State of this process's worker about its claims.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use trainyard_protocol::RunId;

use crate::context::lock::lock;
use crate::context::wakeup::Wakeup;

/// Claims that are due, and what the last ones found.
#[derive(Default)]
pub(crate) struct Claims {
    /// Wakes the task that claims work from the store and reads requests of this worker's runs.
    wakeup: Wakeup,
    due: AtomicBool,
    /// Runs with new requests in the store.
    unread: Mutex<BTreeSet<RunId>>,
    stopped: AtomicBool,
    /// Whether other workers could execute samples that this one can, when this was last examined.
    shares_samples: AtomicBool,
    /// Leases and claims that the store contained and the queue did not, when both were last compared.
    unconfirmed: Mutex<BTreeSet<String>>,
}

impl Claims {
    /// Lets the worker claim what has become free.
    pub(crate) fn wake(&self) {
        self.make_due();
        self.wakeup.wake();
    }

    /// Makes the next wakeup claim work.
    pub(super) fn make_due(&self) {
        self.due.store(true, Ordering::SeqCst);
    }

    /// Returns whether there is a reason to claim, and takes it as handled.
    pub(super) fn take_due(&self) -> bool {
        self.due.swap(false, Ordering::SeqCst)
    }

    /// Returns the wakeup of the task that claims.
    pub(super) fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }

    /// Records that a run has new requests in the store. The next wakeup reads them.
    pub(crate) fn add_unread(&self, run: RunId) {
        lock(&self.unread).insert(run);
    }

    /// Wakes the task to read new requests, without claiming anything.
    pub(crate) fn read_soon(&self) {
        self.wakeup.wake();
    }

    /// Records that runs have requests to read again, and wakes the task if there is anything to read.
    pub(crate) fn read_again(&self, runs: impl IntoIterator<Item = RunId>) {
        let mut unread = lock(&self.unread);
        unread.extend(runs);
        if !unread.is_empty() {
            self.wakeup.wake();
        }
    }

    /// Takes the runs with new requests.
    pub(super) fn take_unread(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut *lock(&self.unread))
    }

    /// Ends all claims: the worker takes nothing new.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Returns whether the worker takes nothing new.
    pub(crate) fn are_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns whether other workers could execute samples that this one can, when this was last examined.
    pub(super) fn shares_samples(&self) -> bool {
        self.shares_samples.load(Ordering::Relaxed)
    }

    pub(super) fn set_shares_samples(&self, shares: bool) {
        self.shares_samples.store(shares, Ordering::Relaxed);
    }

    /// Replaces the names of unconfirmed leases and claims, and returns those of the last comparison.
    pub(super) fn replace_unconfirmed(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        std::mem::replace(&mut *lock(&self.unconfirmed), names)
    }
}
