//! Release of free memory that the allocator keeps after a load, and after each peak of a long one.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_gpu_runtime::memory;
use trainyard_scheduler::Scheduler;

const PERIOD: Duration = Duration::from_secs(3);
/// Periods between two releases of an idle process, which may have been busy in between, and of one that is busy all the time.
const RELEASE_PERIODS: u32 = 20;

/// Kind of free memory to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    /// All free memory, also buffers of the engine.
    All,
    /// What the allocator keeps, since a busy engine needs its buffers again.
    Allocator,
}

/// Decides what is released when.
#[derive(Default)]
struct Turns {
    idle: u32,
    busy: u32,
}

impl Turns {
    /// Returns what to release after a period in which the process was idle or busy.
    fn next(&mut self, is_busy: bool) -> Option<Release> {
        if is_busy {
            (self.idle, self.busy) = (0, self.busy.wrapping_add(1));
            return self.busy.is_multiple_of(RELEASE_PERIODS).then_some(Release::Allocator);
        }
        let now = self.idle % RELEASE_PERIODS == 1;
        self.idle = self.idle.wrapping_add(1);
        now.then_some(Release::All)
    }
}

/// Releases free memory to the system whenever the process is idle, and once a minute what the allocator keeps of a busy
/// one.
pub(super) async fn give_back(scheduler: Scheduler) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut turns, mut seen) = (Turns::default(), 0);
    loop {
        ticks.tick().await;
        let stats = scheduler.stats();
        // Between two short requests a busy process looks idle.
        let is_busy = stats.queued + stats.in_flight > 0 || stats.activity != seen;
        seen = stats.activity;
        let release = match turns.next(is_busy) {
            None => continue,
            Some(Release::All) => memory::release_free,
            Some(Release::Allocator) => memory::trim,
        };
        let _ = tokio::task::spawn_blocking(release).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_keeps_the_buffers_of_its_engine() {
        let mut turns = Turns::default();
        let released: Vec<_> = (1..=60).filter_map(|period| Some((period, turns.next(true)?))).collect();
        assert_eq!(released, [20, 40, 60].map(|period| (period, Release::Allocator)));
        let released: Vec<_> = (1..=42).filter_map(|period| Some((period, turns.next(false)?))).collect();
        assert_eq!(released, [2, 22, 42].map(|period| (period, Release::All)));
        assert_eq!(turns.next(true), None);
        assert_eq!([turns.next(false), turns.next(false)], [None, Some(Release::All)]);
    }
}
