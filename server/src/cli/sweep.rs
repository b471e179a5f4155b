//! Work that time brings: expired sessions, results and checkpoints.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Checkpoint, Clock, Error, Scheduler, Swept, SystemClock};

const PERIOD: Duration = Duration::from_secs(5);

/// After so long without a sweep, sessions may be silent because nobody could hear them: the store was away, or the
/// machine slept.
const DEAF: Duration = Duration::from_secs(60);

/// Sweeps every few seconds, for ever.
pub(super) async fn sweep(scheduler: Scheduler) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = SystemClock.now();
    loop {
        ticks.tick().await;
        let now = SystemClock.now();
        let swept = if last.until(now) > DEAF {
            tracing::warn!("sessions could not be heard for a while; each gets a fresh period");
            scheduler.excuse_silence().await.map(|()| Swept::default())
        } else {
            scheduler.sweep().await
        };
        match swept {
            Ok(swept) => {
                last = now;
                for (tenant, checkpoint) in &swept.checkpoints {
                    remove(&scheduler, tenant, checkpoint).await;
                }
            }
            Err(error) => tracing::warn!(%error, "the sweep failed"),
        }
    }
}

async fn remove(scheduler: &Scheduler, tenant: &TenantId, expired: &Checkpoint) {
    match scheduler.delete_expired_checkpoint(tenant, &expired.path).await {
        Ok(_) | Err(Error::NotFound { .. }) => {}
        Err(error) => tracing::warn!(path = %expired.path, %error, "an expired checkpoint remains"),
    }
}
