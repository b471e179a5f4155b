//! Work on a thread of its own while the engine runs: writing saves, reading checkpoints.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use trainyard_protocol::OpError;

use crate::fault::guarded;

/// A piece of work; owns all data that it needs.
pub(super) type Job<T> = Box<dyn FnOnce() -> Result<T, OpError> + Send>;

/// Does one job at a time. The thread is started by the first one.
pub(super) struct Background<K, T> {
    /// What a job is: in errors, and the name of the thread.
    what: &'static str,
    thread: Option<RunningThread<T>>,
    /// Of the job that is being done.
    pending: Option<K>,
}

struct RunningThread<T> {
    work: Sender<Job<T>>,
    done: Receiver<Result<T, OpError>>,
    handle: JoinHandle<()>,
}

impl<T: Send + 'static> RunningThread<T> {
    fn start(what: &'static str) -> std::io::Result<Self> {
        let ((work, jobs), (report, done)) = (channel::<Job<T>>(), channel());
        let handle = std::thread::Builder::new().name(what.to_owned()).spawn(move || {
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

impl<K, T: Send + 'static> Background<K, T> {
    /// For jobs that are a `what`.
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, thread: None, pending: None }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// The key of the job that is being done.
    pub(super) fn pending(&self) -> Option<&K> {
        self.pending.as_ref()
    }

    /// Starts a job. Fails if another one is being done or the thread cannot be started.
    pub(super) fn start(&mut self, key: K, job: Job<T>) -> Result<(), OpError> {
        let what = self.what;
        let failed = |text: &str| OpError::server(format!("the {what} cannot be started: {text}"));
        if !self.is_idle() {
            return Err(failed("another one is in progress"));
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => RunningThread::start(what).map_err(|error| failed(&error.to_string()))?,
        };
        thread.work.send(job).map_err(|_| failed("its thread has ended"))?;
        (self.thread, self.pending) = (Some(thread), Some(key));
        Ok(())
    }

    /// The key and the result of the current job, if it finishes within `wait`.
    pub(super) fn finished(&mut self, wait: Duration) -> Option<(K, Result<T, OpError>)> {
        let (thread, _) = (self.thread.as_ref()?, self.pending.as_ref()?);
        let result = match thread.done.recv_timeout(wait) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                self.thread = None;
                Err(OpError::server(format!("the thread of the {} has ended", self.what)))
            }
        };
        self.pending.take().map(|key| (key, result))
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
