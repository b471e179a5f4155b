//! Periodic maintenance of the store: expired sessions, results and checkpoints.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Checkpoint, Clock, Error, MaintenanceReport, Scheduler, SystemClock};

const PERIOD: Duration = Duration::from_secs(5);

/// The time without maintenance after which heartbeats may have been lost: the store was unavailable, or the machine
/// slept.
const MISSED_HEARTBEATS: Duration = Duration::from_secs(60);

/// Maintains the store every few seconds until the process ends.
pub(super) async fn maintain(scheduler: Scheduler) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = SystemClock.now();
    loop {
        ticks.tick().await;
        let now = SystemClock.now();
        let done = if last.until(now) > MISSED_HEARTBEATS {
            tracing::warn!("no session heartbeat could be recorded for a while: heartbeats of all sessions extended");
            scheduler.extend_heartbeats().await.map(|()| MaintenanceReport::default())
        } else {
            scheduler.maintain().await
        };
        match done {
            Ok(report) => {
                last = now;
                for (tenant, checkpoint) in &report.checkpoints {
                    remove(&scheduler, tenant, checkpoint).await;
                }
            }
            Err(error) => tracing::warn!(%error, "maintenance failed; retrying"),
        }
    }
}

async fn remove(scheduler: &Scheduler, tenant: &TenantId, expired: &Checkpoint) {
    match scheduler.delete_expired_checkpoint(tenant, &expired.path).await {
        Ok(_) | Err(Error::NotFound { .. }) => {}
        Err(error) => tracing::warn!(path = %expired.path, %error, "failed to delete an expired checkpoint; retrying"),
    }
}
