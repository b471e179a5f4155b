//! Saves that are written by another thread while the engine goes on.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use trainyard_protocol::{OpError, OpResult, RequestId};

use super::fault::guarded;

/// Writes files; holds all that it needs.
pub(super) type Write = Box<dyn FnOnce() -> Result<OpResult, OpError> + Send>;
type Written = Result<OpResult, OpError>;

/// A thread that writes one save at a time. It is started by the first one.
#[derive(Default)]
pub(super) struct Saver {
    thread: Option<Thread>,
    pending: Option<RequestId>,
}

struct Thread {
    work: Sender<Write>,
    done: Receiver<Written>,
    handle: JoinHandle<()>,
}

impl Thread {
    fn start() -> std::io::Result<Self> {
        let ((work, works), (report, done)) = (channel::<Write>(), channel());
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

impl Saver {
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// Begins a save; only while it is idle.
    pub(super) fn start(&mut self, id: RequestId, write: Write) -> Result<(), OpError> {
        let failed = |text: String| OpError::server(format!("the save cannot be started: {text}"));
        if !self.is_idle() {
            return Err(failed("another one is being written".to_owned()));
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => Thread::start().map_err(|error| failed(error.to_string()))?,
        };
        thread.work.send(write).map_err(|_| failed("its thread has ended".to_owned()))?;
        (self.thread, self.pending) = (Some(thread), Some(id));
        Ok(())
    }

    /// The save that was begun, if it is finished, or does so within `wait`.
    pub(super) fn finished(&mut self, wait: Duration) -> Option<(RequestId, Written)> {
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

impl Drop for Saver {
    /// Waits for the save that is being written.
    fn drop(&mut self) {
        if let Some(Thread { work, done, handle }) = self.thread.take() {
            drop((work, done));
            // It catches panics, so that joining it cannot fail.
            drop(handle.join());
        }
    }
}
