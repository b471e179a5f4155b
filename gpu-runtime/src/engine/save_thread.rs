//! A thread that writes saves while the engine runs.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use trainyard_protocol::{OpError, OpResult, RequestId};

use crate::fault::guarded;

/// Writes a save; owns all data that it needs.
pub(super) type SaveFn = Box<dyn FnOnce() -> Result<OpResult, OpError> + Send>;
type SaveResult = Result<OpResult, OpError>;

/// Writes one save at a time. The thread is started by the first one.
#[derive(Default)]
pub(super) struct SaveThread {
    thread: Option<RunningThread>,
    /// The request whose save is being written.
    pending: Option<RequestId>,
}

struct RunningThread {
    work: Sender<SaveFn>,
    done: Receiver<SaveResult>,
    handle: JoinHandle<()>,
}

impl RunningThread {
    fn start() -> std::io::Result<Self> {
        let ((work, works), (report, done)) = (channel::<SaveFn>(), channel());
        let handle = std::thread::Builder::new().name("saver".to_owned()).spawn(move || {
            for write in works {
                let written = guarded("save", write).unwrap_or_else(|fault| Err(fault.error()));
                if report.send(written).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { work, done, handle })
    }
}

impl SaveThread {
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// Starts a save. Fails if another one is being written or the thread cannot be started.
    pub(super) fn start(&mut self, id: RequestId, write: SaveFn) -> Result<(), OpError> {
        let failed = |text: String| OpError::server(format!("the save cannot be started: {text}"));
        if !self.is_idle() {
            return Err(failed("another one is being written".to_owned()));
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => RunningThread::start().map_err(|error| failed(error.to_string()))?,
        };
        thread.work.send(write).map_err(|_| failed("its thread has ended".to_owned()))?;
        (self.thread, self.pending) = (Some(thread), Some(id));
        Ok(())
    }

    /// The request and result of the current save, if it finishes within `wait`.
    pub(super) fn finished(&mut self, wait: Duration) -> Option<(RequestId, SaveResult)> {
        let (thread, _) = (self.thread.as_ref()?, self.pending.as_ref()?);
        let written = match thread.done.recv_timeout(wait) {
            Ok(written) => written,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                self.thread = None;
                Err(OpError::server("the save's thread has ended"))
            }
        };
        self.pending.take().map(|id| (id, written))
    }
}

impl Drop for SaveThread {
    /// Waits for the save that is being written.
    fn drop(&mut self) {
        if let Some(RunningThread { work, done, handle }) = self.thread.take() {
            drop((work, done));
            // The thread catches panics, so that joining it cannot fail.
            drop(handle.join());
        }
    }
}
