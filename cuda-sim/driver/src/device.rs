//! A device: its memory, and the streams whose work it runs.

mod events;

use std::collections::BTreeMap;

use cuda_sim_ptx::{Counters, Launch as KernelLaunch, Memory, Op, Random, Stop, StopKind, launch};

use crate::clock::Clock;
use crate::config::{Config, Schedule};
use crate::error::{CAPTURE_UNSUPPORTED, Code, INVALID_HANDLE, INVALID_VALUE, LAUNCH_FAILED, OUT_OF_MEMORY, Result};
use crate::faults::Faults;
use crate::ffi::host::HostCall;
use crate::graph::Graph;
use crate::pool::Pool;
use crate::stream::{Event, Stream};
use crate::work::{Launch, Submission, Work};

/// The stream without a number, with which streams that are not `NON_BLOCKING` are one.
pub(crate) const DEFAULT_STREAM: usize = 0;

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) memory: Memory,
    pub(crate) pool: Pool,
    /// Bytes that another process holds; `memory` is what they leave.
    occupied: u64,
    streams: BTreeMap<usize, Stream>,
    events: BTreeMap<usize, Event>,
    captures: BTreeMap<usize, Graph>,
    /// Operations that the host knows to be complete.
    known: Clock,
    /// Operations that ran and that something may still be concurrent with: id, stream, number on the stream.
    history: Vec<(u32, usize, u64)>,
    pub(crate) counters: BTreeMap<String, Counters>,
    pub(crate) faults: Faults,
    random: Random,
    schedule: Schedule,
    log: bool,
    step_limit: u64,
    /// Error that stopped the device, if any: every later call returns this code.
    pub(crate) error: Option<Code>,
    /// Text that was printed about the error.
    pub(crate) report: String,
    next: usize,
}

/// Result of a step of the schedule.
pub(crate) enum Step {
    Ran,
    /// A call of the host is next; it must run while no lock is held.
    Call {
        stream: usize,
        call: HostCall,
        op: Op,
    },
    /// Every stream is empty, or waits for a call that another thread runs.
    Idle,
}

impl Device {
    pub(crate) fn new(index: usize, config: &Config) -> Self {
        Self {
            memory: Memory::of_device(config.memory - config.occupied, index),
            pool: Pool::default(),
            occupied: config.occupied,
            streams: BTreeMap::from([(DEFAULT_STREAM, Stream::default())]),
            events: BTreeMap::new(),
            captures: BTreeMap::new(),
            known: Clock::default(),
            history: Vec::new(),
            counters: BTreeMap::new(),
            faults: config.faults.clone(),
            random: Random::new(config.seed ^ index as u64),
            schedule: config.schedule,
            log: config.log,
            step_limit: config.step_limit,
            error: None,
            report: String::new(),
            next: 1,
        }
    }

    /// A number that nothing else of the device has.
    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn create_stream(&mut self) -> usize {
        let number = self.number();
        self.streams.insert(number, Stream::default());
        number
    }

    pub(crate) fn destroy_stream(&mut self, stream: usize) -> Result {
        if stream != DEFAULT_STREAM {
            self.streams.remove(&stream).ok_or(INVALID_HANDLE)?;
        }
        Ok(())
    }

    pub(crate) fn stream(&mut self, stream: usize) -> Result<&mut Stream> {
        self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)
    }

    /// The address of new memory; it is there for the stream at once, for others after an event.
    pub(crate) fn allocate(&mut self, length: usize, stream: Option<usize>) -> Result<u64> {
        if length == 0 {
            return Err(INVALID_VALUE);
        }
        if self.faults.allocation() {
            return Err(OUT_OF_MEMORY);
        }
        let address = self.memory.allocate(length as u64)?;
        if let Some(stream) = stream {
            self.submit(stream, Work::Allocated { address, length })?;
            self.pool.add(address, length as u64);
        }
        // What the pool only keeps makes room.
        let outside = self.memory.used() - self.pool.used();
        self.pool.trim(self.memory.capacity() - outside);
        Ok(address)
    }

    /// Releases memory that nothing uses.
    pub(crate) fn free(&mut self, address: u64) -> Result {
        self.memory.free(address)?;
        self.pool.remove(address);
        Ok(())
    }

    /// Bytes that are free, and all bytes of the device.
    pub(crate) fn memory_info(&self) -> (u64, u64) {
        let (used, capacity) = (self.memory.used() + self.pool.unused(), self.memory.capacity());
        (capacity.saturating_sub(used), capacity + self.occupied)
    }

    /// Appends work to a stream, or to the graph that it is captured into.
    pub(crate) fn submit(&mut self, stream: usize, work: Work) -> Result {
        let known = self.known.clone();
        let queue = self.stream(stream)?;
        if let Some(graph) = queue.capture {
            if matches!(work, Work::Allocated { .. } | Work::Free { .. }) {
                return Err(CAPTURE_UNSUPPORTED);
            }
            self.captures.entry(graph).or_default().work.push(work);
            return Ok(());
        }
        queue.queue.push_back(Submission { work, known });
        Ok(())
    }

    pub(crate) fn begin_capture(&mut self, stream: usize) -> Result {
        let graph = self.number();
        let entry = self.stream(stream)?;
        if entry.capture.is_some() {
            return Err(crate::error::ILLEGAL_STATE);
        }
        entry.capture = Some(graph);
        self.captures.insert(graph, Graph::default());
        Ok(())
    }

    pub(crate) fn end_capture(&mut self, stream: usize) -> Result<Graph> {
        let graph = self.stream(stream)?.capture.ok_or(crate::error::ILLEGAL_STATE)?;
        for stream in self.streams.values_mut().filter(|stream| stream.capture == Some(graph)) {
            stream.capture = None;
        }
        self.captures.remove(&graph).ok_or(crate::error::ILLEGAL_STATE)
    }

    /// How many steps run at most, by chance, after a submission.
    pub(crate) fn spontaneous_steps(&mut self) -> usize {
        match self.schedule {
            Schedule::Random => self.random.below(3),
            Schedule::Late => 0,
            Schedule::Eager => usize::MAX,
        }
    }

    /// Whether everything that was submitted to a stream ran.
    pub(crate) fn is_complete(&mut self, stream: usize) -> Result<bool> {
        Ok(self.stream(stream)?.is_complete())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.streams.values().all(Stream::is_complete)
    }

    /// Whether a stream will come to a call that may wait for other ranks: they wait for it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.streams.values().any(|stream| stream.queued_groups().next().is_some())
    }

    /// Whether calls of a group run or will run.
    pub(crate) fn has_calls_of(&self, group: usize) -> bool {
        let running = |stream: &Stream| stream.running.as_ref().and_then(|call| call.group);
        self.streams
            .values()
            .any(|stream| running(stream).into_iter().chain(stream.queued_groups()).any(|of| of == group))
    }

    /// The host has seen the end of a stream's work.
    pub(crate) fn host_knows(&mut self, stream: usize) {
        if let Some(stream) = self.streams.get(&stream) {
            self.known.join(&stream.time.clone());
        }
        self.pool.trim(self.pool.release_threshold);
        self.forget();
    }

    /// The host has seen the end of everything.
    pub(crate) fn host_knows_all(&mut self) {
        let times: Vec<Clock> = self.streams.values().map(|stream| stream.time.clone()).collect();
        for time in times {
            self.known.join(&time);
        }
        self.pool.trim(self.pool.release_threshold);
        self.forget();
    }

    /// Forgets times once no older submission is left: nothing can then be concurrent with anything that the host
    /// knows.
    fn forget(&mut self) {
        if !self.is_idle() {
            return;
        }
        let known = &self.known;
        self.history.retain(|(_, stream, number)| known.get(*stream) < *number);
        let oldest = self.history.iter().map(|(id, ..)| *id).min();
        let oldest = oldest.unwrap_or_else(|| self.memory.begin("nothing"));
        self.memory.forget_before(oldest);
    }

    /// Runs one operation of a random stream that can go on.
    pub(crate) fn step(&mut self) -> Step {
        let events = &self.events;
        let passed =
            |event: usize, recording: u64| events.get(&event).is_none_or(|event| event.time(recording).is_some());
        let ready: Vec<usize> =
            self.streams.iter().filter(|(_, stream)| stream.is_ready(passed)).map(|(number, _)| *number).collect();
        if ready.is_empty() {
            return Step::Idle;
        }
        let chosen = ready[self.random.below(ready.len())];
        let Some(stream) = self.streams.get_mut(&chosen) else { return Step::Idle };
        let Some(Submission { work, known }) = stream.queue.pop_front() else { return Step::Idle };
        stream.time.join(&known);
        if let Work::Wait { event, recording } = work {
            if let Some(time) = self.events.get(&event).and_then(|event| event.time(recording)) {
                stream.time.join(&time);
            }
            self.event_used(event);
            return Step::Ran;
        }
        stream.done += 1;
        stream.time.set(chosen, stream.done);
        let (time, number) = (stream.time.clone(), stream.done);
        if let Work::Record { event } = work {
            if let Some(event) = self.events.get_mut(&event) {
                event.record(time);
            }
            self.event_used(event);
            return Step::Ran;
        }
        let id = self.memory.begin(&format!("{} (stream {chosen}, operation {number})", work.label()));
        let after = |(_, stream, number): &&(u32, usize, u64)| time.get(*stream) < *number;
        let concurrent = self.history.iter().filter(after).map(|(id, ..)| *id).collect();
        self.history.push((id, chosen, number));
        let op = Op { id, concurrent };
        if self.error.is_some() {
            return Step::Ran;
        }
        if let Work::Call(call) = work {
            stream.running = Some(call.clone());
            return Step::Call { stream: chosen, call, op };
        }
        if let Err(stop) = self.run(work, &op) {
            self.fail(&stop);
        }
        Step::Ran
    }

    /// Checks that another device may touch a range of this one's memory. Memory of pools is of this device alone until access
    /// is granted; to other memory, whoever needs access to it gives it to itself.
    ///
    /// # Errors
    ///
    /// The address is illegal there.
    pub(crate) fn check_peer(&self, address: u64, length: usize, peer: usize) -> std::result::Result<(), Stop> {
        if !self.pool.has_part(address) || self.pool.peers.contains(&peer) {
            return Ok(());
        }
        let message = format!(
            "device {peer} accesses {length} bytes at {address:#x}, in another device's memory pool, to which \
             cuMemPoolSetAccess gave it no access"
        );
        Err(Stop { kind: StopKind::OutOfBounds, message })
    }

    /// A call of the host returned.
    pub(crate) fn call_ended(&mut self, stream: usize) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.running = None;
        }
    }

    /// Puts the device into its error state.
    pub(crate) fn fail(&mut self, stop: &Stop) {
        eprintln!("cuda-sim: {}", stop.message);
        if self.error.is_none() {
            self.error = Some(Code::from(stop));
            self.report = stop.message.clone();
        }
    }

    fn run(&mut self, work: Work, op: &Op) -> std::result::Result<(), Stop> {
        let memory = &mut self.memory;
        match work {
            Work::Launch(launch) => return self.launch(&launch, op),
            Work::Write { to, bytes } => {
                memory.touch(to, bytes.len(), true, op)?;
                memory.write(to, &bytes)?;
            }
            Work::WritePinned { to, from } => {
                memory.touch(to, from.length(), true, op)?;
                memory.write(to, &from.read())?;
            }
            Work::Read { from, to } => {
                memory.touch(from, to.length(), false, op)?;
                to.write(&memory.read(from, to.length())?);
            }
            Work::Copy { to, from, length } => {
                memory.touch(from, length, false, op)?;
                memory.touch(to, length, true, op)?;
                memory.copy(to, from, length)?;
            }
            Work::Fill { to, pattern, length } => {
                memory.touch(to, length, true, op)?;
                let mut bytes = pattern.repeat(length.div_ceil(pattern.len().max(1)));
                bytes.truncate(length);
                memory.write(to, &bytes)?;
            }
            Work::Allocated { address, length } => memory.touch(address, length, true, op)?,
            Work::Free { address } => {
                let length = memory.size_of(address).unwrap_or(0) as usize;
                memory.touch(address, length, true, op)?;
                // A second free was refused when it was submitted.
                let _ = self.free(address);
            }
            Work::Record { .. } | Work::Wait { .. } | Work::Call(_) => {}
        }
        Ok(())
    }

    fn launch(&mut self, work: &Launch, op: &Op) -> std::result::Result<(), Stop> {
        if self.faults.launch() {
            eprintln!("cuda-sim: injected fault: the launch of {} fails", work.kernel.name());
            self.report = format!("injected fault: the launch of {} fails", work.kernel.name());
            self.error = Some(LAUNCH_FAILED);
            return Ok(());
        }
        let seed = self.random.next_u64();
        let kernel = &work.kernel;
        let counters = launch(
            &KernelLaunch {
                kernel,
                grid: work.grid,
                block: work.block,
                dynamic_shared: work.dynamic_shared,
                params: &work.params,
                seed,
                step_limit: self.step_limit,
            },
            &mut self.memory,
            op,
        )?;
        if self.log {
            let (name, grid, block) = (kernel.name(), work.grid, work.block);
            eprintln!("cuda-sim: {name} grid {grid:?} block {block:?}: {} warp instructions", counters.instructions);
        }
        *self.counters.entry(kernel.name().to_owned()).or_default() += counters;
        Ok(())
    }
}
