//! Streams and events of a device.

use std::collections::VecDeque;

use crate::clock::Clock;
use crate::ffi::host::HostCall;
use crate::work::{Submission, Work};

#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) queue: VecDeque<Submission>,
    /// Clock of the end of the stream's last operation.
    pub(crate) time: Clock,
    /// Number of operations that ran.
    pub(crate) done: u64,
    /// The graph that its work is captured into, instead of running.
    pub(crate) capture: Option<usize>,
    /// The call of the host that runs now.
    pub(crate) running: Option<HostCall>,
}

#[derive(Debug, Default)]
pub(crate) struct Event {
    /// How often it was recorded by submissions, and how many of these records ran.
    pub(crate) submitted: u64,
    pub(crate) recorded: u64,
    /// Clocks of records that ran and that may still be waited for.
    pub(crate) times: VecDeque<(u64, Clock)>,
    /// The graph whose capture recorded it last.
    pub(crate) capture: Option<usize>,
    /// Records and waits in the queues of streams that name it.
    pub(crate) queued: usize,
    /// The program has destroyed it: it stays for what is queued.
    pub(crate) destroyed: bool,
}

impl Event {
    /// The clock of a record; `None` before the record ran.
    pub(crate) fn time(&self, recording: u64) -> Option<Clock> {
        if recording == 0 {
            return Some(Clock::default());
        }
        if self.recorded < recording {
            return None;
        }
        let found = self.times.iter().find(|(number, _)| *number == recording);
        found.or(self.times.front()).map(|(_, time)| time.clone())
    }

    /// Stores the clock of a record that ran.
    pub(crate) fn record(&mut self, time: Clock) {
        self.recorded += 1;
        self.times.push_back((self.recorded, time));
        if self.times.len() > 64 {
            self.times.pop_front();
        }
    }
}

impl Stream {
    /// Whether its next work can run now.
    pub(crate) fn is_ready(&self, passed: impl Fn(usize, u64) -> bool) -> bool {
        match self.queue.front() {
            Some(Submission { work: Work::Wait { event, recording }, .. }) => {
                self.running.is_none() && passed(*event, *recording)
            }
            Some(_) => self.running.is_none(),
            None => false,
        }
    }

    /// Whether everything that was submitted ran.
    pub(crate) fn is_complete(&self) -> bool {
        self.queue.is_empty() && self.running.is_none()
    }

    /// Groups of the calls in its queue that may wait for other ranks.
    pub(crate) fn queued_groups(&self) -> impl Iterator<Item = usize> {
        self.queue.iter().filter_map(|submission| match &submission.work {
            Work::Call(call) => call.group,
            _ => None,
        })
    }
}
