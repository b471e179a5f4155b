//! Memory that a load has left behind.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_gpu_runtime::memory;
use trainyard_scheduler::Scheduler;

const PERIOD: Duration = Duration::from_secs(3);
/// Periods after which an idle process does it again: it may have been busy in between.
const AGAIN: u32 = 20;

/// Gives free memory back whenever the process has nothing to do, for ever.
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
        if idle % AGAIN == 1 {
            let _ = tokio::task::spawn_blocking(memory::give_back).await;
        }
        idle = idle.wrapping_add(1);
    }
}
