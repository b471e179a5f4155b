//! Periodic maintenance of the store: expired sessions, results and checkpoints.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Checkpoint, Clock, Error, MaintenanceReport, Scheduler, SystemClock};

const PERIOD: Duration = Duration::from_secs(5);

/// The time without maintenance after which heartbeats may have been lost, because the store was unavailable or the machine
/// slept.
const MISSED_HEARTBEATS: Duration = Duration::from_secs(60);

/// The same where sessions expire after `session_timeout`, or the scheduler's default: well before they do.
fn missed_heartbeats(session_timeout: Option<Duration>) -> Duration {
    session_timeout.map_or(MISSED_HEARTBEATS, |timeout| (timeout / 4).clamp(2 * PERIOD, MISSED_HEARTBEATS))
}

/// Maintains the store every few seconds until the process ends. Sessions expire after `session_timeout` without a
/// heartbeat, or the scheduler's default.
pub(super) async fn maintain(scheduler: Scheduler, session_timeout: Option<Duration>) {
    let missed = missed_heartbeats(session_timeout);
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = SystemClock.now();
    loop {
        ticks.tick().await;
        let now = SystemClock.now();
        let done = if last.until(now) > missed {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_are_missed_before_sessions_expire() {
        let missed = |seconds| missed_heartbeats(Some(Duration::from_secs(seconds)));
        assert_eq!([5, 30, 60, 120, 300, 3600].map(missed), [10, 10, 15, 30, 60, 60].map(Duration::from_secs));
        assert_eq!(missed_heartbeats(None), MISSED_HEARTBEATS);
    }
}
