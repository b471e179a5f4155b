//! Release of free memory that the allocator keeps after a load.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_gpu_runtime::memory;
use trainyard_scheduler::Scheduler;

const PERIOD: Duration = Duration::from_secs(3);
/// Periods between two releases of an idle process: it may have been busy in between.
const RELEASE_PERIODS: u32 = 20;

/// Releases free memory to the system whenever the process is idle.
pub(super) async fn give_back(scheduler: Scheduler) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut idle, mut seen) = (0_u32, 0);
    loop {
        ticks.tick().await;
        let stats = scheduler.stats();
        // Between two short requests a busy process looks idle.
        if stats.queued + stats.in_flight > 0 || stats.activity != seen {
            (idle, seen) = (0, stats.activity);
            continue;
        }
        if idle % RELEASE_PERIODS == 1 {
            let _ = tokio::task::spawn_blocking(memory::release_free).await;
        }
        idle = idle.wrapping_add(1);
    }
}
