//! Work that time brings: expired sessions, results and checkpoints.

use std::io;
use std::path::Path;
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
                for session in &swept.sessions {
                    tracing::info!(%session, "a session expired");
                }
                for (tenant, checkpoint) in &swept.checkpoints {
                    remove(&scheduler, tenant, checkpoint).await;
                }
            }
            Err(error) => tracing::warn!(%error, "the sweep failed"),
        }
    }
}

async fn remove(scheduler: &Scheduler, tenant: &TenantId, expired: &Checkpoint) {
    match scheduler.delete_checkpoint(tenant, &expired.path).await {
        Ok(deleted) => remove_folder(&deleted.dir).await,
        Err(Error::NotFound { .. }) => {}
        Err(error) => tracing::warn!(path = %expired.path, %error, "an expired checkpoint remains"),
    }
}

async fn remove_folder(dir: &Path) {
    match tokio::fs::remove_dir_all(dir).await {
        Ok(()) => tracing::info!(dir = %dir.display(), "an expired checkpoint was removed"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(dir = %dir.display(), %error, "the folder of an expired checkpoint remains"),
    }
}
