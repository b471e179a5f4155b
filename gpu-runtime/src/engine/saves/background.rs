//! Work on a separate thread while the engine runs: writing saves, reading checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use trainyard_protocol::OpError;

use crate::collective::Ranks;
use crate::engine::lockstep::agreed;
use crate::fault::guarded;
use crate::interrupt::{Interrupt, interruptible};

/// How long a rank waits for its own result once it has that of rank 0; the others give up before.
const UNTIL_DONE: Duration = Duration::from_secs(3600);

/// A piece of work; owns all data that it needs.
pub(crate) type Job<T> = Box<dyn FnOnce() -> Result<T, OpError> + Send>;

/// Does one job at a time. The thread is started by the first one.
pub(crate) struct Background<K, T> {
    /// Kind of the jobs, for errors and as the name of the thread.
    what: &'static str,
    thread: Option<RunningThread<T>>,
    /// Key of the running job.
    pending: Option<K>,
    /// Whether the running job is to end, because nobody needs its result.
    cancelled: Arc<AtomicBool>,
    /// Ranks that do the same jobs at once: a job is done when rank 0 reports it, and fails if it failed on one rank.
    ranks: Ranks,
    /// Niceness of the thread above that of the engine.
    niceness: i32,
    /// Bytes of the thread's stack, if not the usual ones.
    stack: Option<usize>,
}

struct RunningThread<T> {
    work: Sender<Job<T>>,
    done: Receiver<Result<T, OpError>>,
    handle: JoinHandle<()>,
}

impl<T: Send + 'static> RunningThread<T> {
    fn start(what: &'static str, niceness: i32, stack: Option<usize>) -> std::io::Result<Self> {
        let ((work, jobs), (report, done)) = (channel::<Job<T>>(), channel());
        let builder = std::thread::Builder::new().name(what.to_owned());
        let builder = stack.into_iter().fold(builder, std::thread::Builder::stack_size);
        let handle = builder.spawn(move || {
            lower_priority(niceness);
            for job in jobs {
                let result = guarded(what, job).unwrap_or_else(|fault| Err(fault.error()));
                if report.send(result).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { work, done, handle })
    }
}

/// Lowers the priority of the calling thread, where the system permits that.
fn lower_priority(niceness: i32) {
    // Elsewhere than on Linux the call would change the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(niceness);
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

impl<K, T: Send + 'static> Background<K, T> {
    /// A thread for jobs of the kind `what`.
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            thread: None,
            pending: None,
            cancelled: Arc::default(),
            ranks: Ranks::default(),
            niceness: 0,
            stack: None,
        }
    }

    /// Does the jobs with this niceness above the engine's, so that they slow it down less.
    pub(crate) fn with_niceness(mut self, niceness: i32) -> Self {
        self.niceness = niceness;
        self
    }

    /// Gives the thread a stack of so many bytes.
    pub(crate) fn with_stack(mut self, bytes: usize) -> Self {
        self.stack = Some(bytes);
        self
    }

    /// Does each job on all of these ranks.
    pub(crate) fn on(mut self, ranks: &Ranks) -> Self {
        self.ranks = ranks.clone();
        self
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// The key of the job that is being done.
    pub(super) fn pending(&self) -> Option<&K> {
        self.pending.as_ref()
    }

    /// Has the running job end if `is_meant` accepts its key. A job that reads or writes files ends between two of their
    /// pieces, with an error; one that does not ask ends as if nothing had been said.
    pub(crate) fn cancel_if(&mut self, is_meant: impl FnOnce(&K) -> bool) {
        if self.pending.as_ref().is_some_and(is_meant) {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the running job, or else the last one, was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Starts a job. Fails if another one is being done or the thread cannot be started.
    pub(crate) fn start(&mut self, key: K, job: Job<T>) -> Result<(), OpError> {
        let what = self.what;
        let failed = |text: &str| OpError::server(format!("the {what} cannot be started: {text}"));
        if !self.is_idle() {
            return Err(failed("another one is in progress"));
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => {
                RunningThread::start(what, self.niceness, self.stack).map_err(|error| failed(&error.to_string()))?
            }
        };
        // The former job may still ask about its own end.
        self.cancelled = Arc::default();
        let cancelled = Arc::clone(&self.cancelled);
        let interrupt = Interrupt::new(move || cancelled.load(Ordering::Relaxed));
        let job: Job<T> = Box::new(move || interruptible(interrupt, job));
        thread.work.send(job).map_err(|_| failed("its thread has ended"))?;
        (self.thread, self.pending) = (Some(thread), Some(key));
        Ok(())
    }

    /// The key and the result of the current job, if it finishes within `wait`.
    pub(crate) fn finished(&mut self, wait: Duration) -> Option<(K, Result<T, OpError>)> {
        self.pending.as_ref()?;
        let result = if self.ranks.is_single() {
            self.result(wait)?
        } else {
            // Ranks finish at different times. What follows from the end has to follow on all at the same point.
            let first = if self.ranks.rank() == 0 { self.result(wait) } else { None };
            if self.ranks.decide(u8::from(first.is_some())) == 0 {
                return None;
            }
            let own = match first {
                Some(own) => own,
                None => self.result(UNTIL_DONE)?,
            };
            agreed(&self.ranks, own)
        };
        self.pending.take().map(|key| (key, result))
    }

    /// The result of the current job, if it finishes within `wait`.
    fn result(&mut self, wait: Duration) -> Option<Result<T, OpError>> {
        match self.thread.as_ref()?.done.recv_timeout(wait) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.thread = None;
                Some(Err(OpError::server(format!("the thread of the {} has ended", self.what))))
            }
        }
    }
}

impl<K, T> Drop for Background<K, T> {
    /// Waits for the job that is being done.
    fn drop(&mut self) {
        if let Some(RunningThread { work, done, handle }) = self.thread.take() {
            drop((work, done));
            // The thread catches panics, so that joining it cannot fail.
            drop(handle.join());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::interrupt;

    #[test]
    fn a_job_ends_when_it_is_cancelled_and_the_next_one_does_not() {
        let mut thread = Background::new("test");
        let endless = || -> Result<(), OpError> {
            loop {
                interrupt::check().map_err(|_| interrupt::ended())?;
                std::thread::yield_now();
            }
        };
        thread.start(1, Box::new(endless)).unwrap();
        thread.cancel_if(|key| *key == 2);
        assert!(!thread.is_cancelled() && thread.finished(Duration::from_millis(20)).is_none());
        thread.cancel_if(|key| *key == 1);
        let (key, result) = thread.finished(Duration::from_secs(600)).unwrap();
        assert!(key == 1 && thread.is_cancelled() && result.unwrap_err().message.contains("its session ended"));
        thread.start(3, Box::new(|| interrupt::check().map_err(|_| interrupt::ended()))).unwrap();
        assert!(matches!(thread.finished(Duration::from_secs(600)), Some((3, Ok(())))));
        assert!(!thread.is_cancelled());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_may_have_a_lower_priority_than_the_engine() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        for (above, expected) in [(0, own), (5, (own + 5).min(19))] {
            let mut thread = Background::new("test").with_niceness(above);
            thread.start((), Box::new(move || Ok(niceness()))).unwrap();
            assert_eq!(thread.finished(Duration::from_secs(600)).unwrap().1.unwrap(), expected);
        }
        assert_eq!(niceness(), own);
    }
}
