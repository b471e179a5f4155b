//! CUDA graphs for passes that queue the same work repeatedly, such as those of decoding: one launch for all of it.
//!
//! Between [`Queue::begin_repeated`](super::queue::Queue::begin_repeated) and its end, work is held back as long as a
//! known sequence begins with the same work: the same kernels with the same parameters, copies to and from the same
//! addresses. Where the host waits for the device, a sequence ends. If the whole sequence is known, its graph is
//! launched; otherwise, the work that was held back is queued, and the sequence is known from then on. So a graph runs
//! exactly the work that the ops of the pass requested. Bytes that are copied to the device may differ from pass to
//! pass: they go through page-locked memory, which the graph's copies read.
#![allow(unsafe_code, reason = "graphs are handles of the driver, made and released here")]

use cudarc::driver::DriverError;
use cudarc::driver::result::{self, graph, stream};
use cudarc::driver::sys::{CUgraph, CUgraphExec, CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::error::Result;
use super::page_locked::PageLocked;
use super::transfers::Transfers;
use super::work::Work;

/// Fewer are launched one by one.
const LEAST_WORK: usize = 8;
/// More belong to no pass of decoding.
const MOST_WORK: usize = 1 << 16;
/// Sequences that are known at most: that which was not seen for longest is forgotten.
const MOST_KNOWN: usize = 64;

/// Treatment of submitted work.
#[derive(Default)]
enum Mode {
    /// Work is queued at once.
    #[default]
    Direct,
    /// Work is queued at once and noted, because no known sequence begins with it.
    Noted(Vec<Work>),
    /// Work is held back, because known sequences, by index, begin with it.
    Held(Vec<Work>, Vec<usize>),
}

/// Known sequences, and the one that is being submitted.
#[derive(Default)]
pub(super) struct Graphs {
    known: Vec<Known>,
    mode: Mode,
    /// Sequences that were begun.
    clock: u64,
    /// How often the host waited for the stream.
    waits: u64,
    launched: u64,
}

struct Known {
    work: Vec<Work>,
    graph: Option<Graph>,
    /// Whether the driver made no graph of it.
    is_refused: bool,
    seen: u64,
}

impl Graphs {
    /// Graphs that were launched.
    pub(super) fn launched(&self) -> u64 {
        self.launched
    }

    /// Begins a sequence, in a pass that may repeat.
    pub(crate) fn begin(&mut self) {
        self.clock += 1;
        self.mode = match (0..self.known.len()).collect::<Vec<_>>() {
            known if known.is_empty() => Mode::Noted(Vec::new()),
            known => Mode::Held(Vec::new(), known),
        };
    }

    /// Queues work now or later.
    pub(super) fn submit(&mut self, driver: &Transfers, work: Work) -> Result {
        match &mut self.mode {
            Mode::Direct => return work.issue(driver),
            Mode::Noted(noted) => {
                work.issue(driver)?;
                noted.push(work);
                if noted.len() > MOST_WORK {
                    self.mode = Mode::Direct;
                }
            }
            Mode::Held(held, known) => {
                known.retain(|index| {
                    let next = self.known.get(*index).and_then(|known| known.work.get(held.len()));
                    next.is_some_and(|next| next.is_like(&work))
                });
                held.push(work);
                if known.is_empty() {
                    let held = std::mem::take(held);
                    issue_all(driver, &held)?;
                    self.mode = Mode::Noted(held);
                }
            }
        }
        Ok(())
    }

    /// Queues what was held back, because something else is about to be queued. The rest of the sequence is not known.
    pub(super) fn interrupt(&mut self, driver: &Transfers) -> Result {
        match std::mem::take(&mut self.mode) {
            Mode::Held(held, _) => issue_all(driver, &held),
            Mode::Direct | Mode::Noted(_) => Ok(()),
        }
    }

    /// The host is about to wait: the sequence ends, and within a pass that `repeats` another one begins.
    pub(crate) fn wait(&mut self, driver: &Transfers, repeats: bool) -> Result {
        self.end(driver)?;
        if repeats {
            self.begin();
        }
        self.waits += 1;
        Ok(())
    }

    /// Ends the sequence: queues what was held back. Work that follows is queued at once.
    pub(crate) fn end(&mut self, driver: &Transfers) -> Result {
        match std::mem::take(&mut self.mode) {
            Mode::Direct => Ok(()),
            Mode::Noted(noted) => {
                self.note(&noted);
                Ok(())
            }
            Mode::Held(held, known) => {
                let whole = |index: &usize| self.known.get(*index).is_some_and(|known| known.work.len() == held.len());
                match known.iter().copied().find(whole) {
                    Some(index) => self.run_known(driver, index, &held),
                    None => {
                        issue_all(driver, &held)?;
                        self.note(&held);
                        Ok(())
                    }
                }
            }
        }
    }

    fn note(&mut self, work: &[Work]) {
        if work.len() < LEAST_WORK {
            return;
        }
        if self.known.len() >= MOST_KNOWN
            && let Some(oldest) = (0..self.known.len()).min_by_key(|index| self.known[*index].seen)
        {
            self.known.swap_remove(oldest);
        }
        let work = work.iter().map(Work::outline).collect();
        self.known.push(Known { work, graph: None, is_refused: false, seen: self.clock });
    }

    /// Launches the graph of a known sequence, which equals this work; makes the graph on the first launch.
    fn run_known(&mut self, driver: &Transfers, index: usize, work: &[Work]) -> Result {
        let (clock, waits) = (self.clock, self.waits);
        let Some(known) = self.known.get_mut(index) else { return issue_all(driver, work) };
        known.seen = clock;
        if known.graph.is_none() && !known.is_refused {
            match Graph::capture(driver, &known.work) {
                Ok(graph) => known.graph = Some(graph),
                Err(error) => {
                    tracing::debug!(%error, "the driver could not capture a graph of a pass; its kernels are launched one by one");
                    known.is_refused = true;
                }
            }
        }
        let Some(graph) = &mut known.graph else { return issue_all(driver, work) };
        // Its page-locked memory may still be read by its last launch.
        if graph.launched_at == Some(waits) {
            driver.wait_for_stream()?;
            self.waits += 1;
        }
        graph.launch(driver, work)?;
        graph.launched_at = Some(self.waits);
        self.launched += 1;
        Ok(())
    }
}

fn issue_all(driver: &Transfers, work: &[Work]) -> Result {
    work.iter().try_for_each(|work| work.issue(driver))
}

/// A graph, and the memory of the host that its copies read.
struct Graph {
    graph: CUgraph,
    executable: CUgraphExec,
    staging: PageLocked,
    /// How often the host had waited for the stream when it was launched.
    launched_at: Option<u64>,
}

// SAFETY: handles that the driver accepts from any thread for which the context is current.
unsafe impl Send for Graph {}

impl Graph {
    /// Captures a graph of the given work, without running it.
    fn capture(driver: &Transfers, work: &[Work]) -> Result<Self> {
        let staged = |work: &Work| if let Work::Write { room, .. } = work { *room } else { 0 };
        driver.bind()?;
        let staging = PageLocked::zeros(work.iter().map(staged).sum()).map_err(|e| refused("cuMemHostAlloc", e))?;
        // Not that of the work: what other threads queue meanwhile would be captured too.
        let stream = driver.capture_stream();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is the driver's own.
        unsafe { stream::begin_capture(stream, mode) }.map_err(|e| refused("cuStreamBeginCapture", e))?;
        let mut at = 0;
        let captured = work.iter().try_for_each(|work| match work {
            Work::Write { to, room, .. } => {
                let from = staging.part(at, *room);
                at += room;
                // SAFETY: `from` is page-locked and lives as long as the graph; `room` bytes at `to` may be overwritten.
                unsafe { result::memcpy_htod_async(*to, from, stream) }.map_err(|e| refused("cuMemcpyHtoDAsync", e))
            }
            work => work.issue_on(driver, stream),
        });
        // SAFETY: the capture was begun above. It has to end also where something in it failed.
        let graph = unsafe { stream::end_capture(stream) }.map_err(|e| refused("cuStreamEndCapture", e));
        captured?;
        let graph = graph?;
        // SAFETY: the graph was just made.
        match unsafe { graph::instantiate(graph, CUgraphInstantiate_flags(0)) } {
            Ok(executable) => Ok(Self { graph, executable, staging, launched_at: None }),
            Err(error) => {
                // SAFETY: as above; nothing refers to it.
                let _ = unsafe { graph::destroy(graph) };
                Err(refused("cuGraphInstantiate", error))
            }
        }
    }

    /// Runs it with the bytes of this work, which is like that of its capture.
    fn launch(&mut self, driver: &Transfers, work: &[Work]) -> Result {
        let mut at = 0;
        for work in work {
            if let Work::Write { room, bytes, .. } = work {
                self.staging.write(at, bytes);
                at += room;
            }
        }
        // SAFETY: the graph and the stream live; memory that it refers to is that of slices of this pass, as its work is.
        unsafe { graph::launch(self.executable, driver.raw_stream()) }.map_err(|e| driver.failed("cuGraphLaunch", e))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: handles are this value's; the driver retains what still runs.
        unsafe {
            let _ = graph::exec_destroy(self.executable);
            let _ = graph::destroy(self.graph);
        }
    }
}

fn refused(call: &str, error: DriverError) -> super::error::CudaError {
    super::error::CudaError::driver(call, error)
}
