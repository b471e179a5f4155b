//! The work of a device, in the order in which ops ask for it: queued at once, or as [`graphs`](super::graphs).

use std::ffi::c_void;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::driver::Driver;
use super::element::Element;
use super::error::Result;
use super::event::Event;
use super::graphs::Graphs;
use super::reads::ElementSink;
use super::transfers::Transfers;
use super::work::Work;

/// A device's stream, and the driver of that device.
pub(crate) struct Queue {
    driver: Transfers,
    graphs: Mutex<Graphs>,
    /// Whether work goes through `graphs`.
    repeats: AtomicBool,
}

impl Deref for Queue {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        &self.driver
    }
}

impl Queue {
    pub(crate) fn new(driver: Driver) -> Self {
        Self { driver: Transfers::new(driver), graphs: Mutex::default(), repeats: AtomicBool::new(false) }
    }

    fn graphs(&self) -> MutexGuard<'_, Graphs> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a pass that may repeat; see [`Graphs`]. With other ranks the work is queued as usual, because their
    /// collectives come in between and waits for them have a limit.
    pub(crate) fn begin_repeated(&self) {
        if !self.driver.peers().is_empty() {
            return;
        }
        self.graphs().begin();
        self.repeats.store(true, Ordering::Relaxed);
    }

    /// The end of such a pass, whose work is all queued then.
    pub(crate) fn end_repeated(&self) -> Result {
        self.driver.bind()?;
        let mut graphs = self.graphs();
        let ended = graphs.end(&self.driver);
        // Work of other threads comes after what was held back.
        self.repeats.store(false, Ordering::Relaxed);
        ended
    }

    /// Graphs that were launched.
    pub(crate) fn launched_graphs(&self) -> u64 {
        self.graphs().launched()
    }

    /// Queues work that was held back.
    fn interrupt(&self) -> Result {
        match self.repeats.load(Ordering::Relaxed) {
            true => self.graphs().interrupt(&self.driver),
            false => Ok(()),
        }
    }

    /// Queues work, in a pass that may repeat perhaps later.
    pub(crate) fn push(&self, work: Work) -> Result {
        self.driver.bind()?;
        match self.repeats.load(Ordering::Relaxed) {
            true => self.graphs().submit(&self.driver, work),
            false => work.issue(&self.driver),
        }
    }

    /// The stream as other libraries take it, which are about to queue work of their own.
    pub(crate) fn stream(&self) -> *mut c_void {
        // An error is that of a lost device, which their call gets too.
        let _ = self.interrupt();
        self.driver.raw_stream().cast()
    }

    /// Releases memory after the work that was queued so far.
    pub(crate) fn free(&self, address: u64) -> Result {
        self.driver.bind()?;
        self.interrupt()?;
        self.driver.issue_free(address)
    }

    /// Records an event after all work that was asked for so far.
    pub(crate) fn record(&self, event: &Event) -> Result {
        self.interrupt()?;
        event.record(&self.driver, self.driver.raw_stream())
    }

    /// Copies `len` elements from an address to the host, as they are after an event, in parallel with the work; see
    /// [`read`](super::reads::read).
    pub(crate) fn read<T: Element>(
        &self,
        after: &Event,
        from: u64,
        len: usize,
        each: &mut ElementSink<'_, T>,
    ) -> Result<io::Result<()>> {
        self.driver.read(after, from, len, each)
    }

    /// Copies to the device; the source may change at once. Up to `room` bytes may be overwritten.
    pub(super) fn copy_in(&self, to: u64, bytes: &[u8], room: usize) -> Result {
        if self.repeats.load(Ordering::Relaxed) {
            return self.push(Work::Write { to, room: room.max(bytes.len()), bytes: bytes.to_vec() });
        }
        self.driver.bind()?;
        self.driver.issue_write(to, bytes)
    }

    /// Queues all work that was asked for, before the host waits for it.
    fn flush(&self) -> Result {
        self.driver.bind()?;
        self.driver.settle()?;
        self.graphs().wait(&self.driver, self.repeats.load(Ordering::Relaxed))
    }

    /// Copies to the host, and waits for it and for all work before.
    pub(super) fn copy_out<T: Copy>(&self, to: &mut [T], from: u64) -> Result {
        self.flush()?;
        self.driver.issue_read(to, from)?;
        self.driver.wait_for_stream()
    }

    /// Waits for all work.
    pub(crate) fn synchronize(&self) -> Result {
        self.flush()?;
        self.driver.wait_for_stream()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // What runs may still read what graphs own.
        let graphs = std::mem::take(&mut *self.graphs());
        if !self.driver.finish() {
            std::mem::forget(graphs);
        }
    }
}
