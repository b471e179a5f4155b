//! Processor time, by which inputs and searches are limited. It does not grow while the machine does something else.

use std::fs;
use std::time::{Duration, Instant};

/// Ticks of a second in `/proc/self/stat`, on every Linux that Rust supports.
const TICKS: u64 = 100;

/// How long the last reading is used.
const FRESH: Duration = Duration::from_millis(100);

/// The processor time since a moment; where the system does not tell it, the time that passes.
pub(crate) struct ProcessorTime {
    began: Instant,
    before: Option<Duration>,
    read: Instant,
    last: Duration,
}

impl ProcessorTime {
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self { began: now, before: of_process(), read: now, last: Duration::ZERO }
    }

    pub(crate) fn elapsed(&mut self) -> Duration {
        if self.read.elapsed() > FRESH {
            self.read = Instant::now();
            let spent = of_process().zip(self.before).map(|(now, before)| now.saturating_sub(before));
            self.last = spent.unwrap_or_else(|| self.began.elapsed());
        }
        self.last
    }
}

/// The processor time of this thread.
pub(crate) fn of_thread() -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(statistics.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// User and system time of all threads.
fn of_process() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may contain spaces.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * 1000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let mut time = ProcessorTime::start();
        let began = Instant::now();
        let mut sum = 0_u64;
        while time.elapsed() < Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_add(1));
            assert!(began.elapsed() < Duration::from_secs(60), "the time stands still");
        }
    }
}
