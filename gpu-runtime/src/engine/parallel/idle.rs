//! Release of the free memory of a rank that is a process, while rank 0 has no work. The process of rank 0 itself knows
//! when it is idle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::memory;

/// Pause between two looks at the count of calls.
const PERIOD: Duration = Duration::from_secs(3);

/// Returns free memory to the system once in each pause between calls. Dropping it ends its thread.
pub(super) struct IdleMemory {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    calls: AtomicU64,
    stop: Mutex<bool>,
    stopped: Condvar,
}

impl IdleMemory {
    /// Watches from now on. Where no thread can be started, memory stays with the process.
    pub(super) fn watch() -> Self {
        Self::every(PERIOD, memory::release_free)
    }

    fn every(period: Duration, release: impl Fn() + Send + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let watched = Arc::clone(&shared);
        let watcher = thread::Builder::new().name("idle-memory".to_owned()).spawn(move || watched.run(period, release));
        Self { shared, watcher: watcher.ok() }
    }

    /// Counts one call of the engine.
    pub(super) fn called(&self) {
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for IdleMemory {
    fn drop(&mut self) {
        *self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
        // It has no result, and a panic in it loses nothing.
        let _ = self.watcher.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn run(&self, period: Duration, release: impl Fn()) {
        let mut seen = self.calls.load(Ordering::Relaxed);
        let mut released = true;
        loop {
            let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
            let (stop, _) =
                self.stopped.wait_timeout_while(stop, period, |stop| !*stop).unwrap_or_else(PoisonError::into_inner);
            if *stop {
                return;
            }
            drop(stop);
            let calls = self.calls.load(Ordering::Relaxed);
            if calls != seen {
                (seen, released) = (calls, false);
            } else if !released {
                release();
                released = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    const SOON: Duration = Duration::from_millis(5);
    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn every_pause_releases_once() {
        let (released, releases) = channel();
        let idle = IdleMemory::every(SOON, move || {
            // The test may be over.
            let _ = released.send(());
        });
        for _ in 0..3 {
            assert_eq!(releases.recv_timeout(10 * SOON), Err(RecvTimeoutError::Timeout), "nothing was called");
            idle.called();
            assert_eq!(releases.recv_timeout(LIMIT), Ok(()));
        }
        drop(idle);
        assert_eq!(releases.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected), "its thread has ended");
    }
}
