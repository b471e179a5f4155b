//! Work that time brings: expired sessions, results and checkpoints.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use trainyard_protocol::TenantId;
use trainyard_scheduler::{Checkpoint, Error, Scheduler};

const PERIOD: Duration = Duration::from_secs(5);

/// Sweeps every few seconds, for ever.
pub(super) async fn sweep(scheduler: Scheduler) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match scheduler.sweep().await {
            Ok(swept) => {
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
