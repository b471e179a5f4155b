//! Follows changes in the store: limits of organisations, and which of them are disabled.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::timeout;

use crate::calls::sessions::EndSession;
use crate::context::core::Core;
use crate::quotas::Grants;
use crate::store::organisation_limits;
use crate::{Error, SessionStatus};

/// Longest time for which a change without notification stays unknown. The command line can't notify a process on
/// SQLite, and a notification may get lost. Well below the promised second.
const PERIOD: Duration = Duration::from_millis(500);

impl Core {
    /// Reads the limits in the store and applies them from now on. Sessions of newly disabled organisations end in the
    /// background; if that fails, the next maintenance ends them.
    pub(crate) async fn refresh_grants(self: &Arc<Self>) -> Result<(), Error> {
        let _one = self.grants.exclusive().await;
        let stored = organisation_limits::granted(&mut self.system_reader().await?).await?;
        let (grants, former) = (Arc::new(Grants::join(&self.options.policies, &stored)), self.grants.present());
        if grants == former {
            return Ok(());
        }
        self.grants.replace(Arc::clone(&grants));
        if grants.policies != former.policies {
            let now = self.now();
            self.with_queue(|queue| queue.set_policies(grants.policies.clone(), now));
        }
        if self.options.serves_clients && !grants.disabled.is_subset(&former.disabled) {
            let core = Arc::clone(self);
            self.runtime.spawn(async move {
                if let Err(error) = core.end_sessions_of_disabled().await {
                    tracing::warn!(%error, "sessions of a disabled organisation did not end; retrying");
                }
            });
        }
        Ok(())
    }

    /// Ends the sessions of disabled organisations as if their heartbeats had stopped: waiting requests and samples are
    /// cancelled, and a training request that is being executed finishes.
    pub(crate) async fn end_sessions_of_disabled(self: &Arc<Self>) -> Result<(), Error> {
        let sessions = organisation_limits::sessions_of_disabled(&mut self.system_reader().await?).await?;
        for session in sessions {
            let end = EndSession {
                tenant: None,
                session: session.clone(),
                status: SessionStatus::Expired,
                without_heartbeat_since: None,
            };
            if self.call(end).await? {
                tracing::info!(%session, "session expired: its organisation is disabled");
            }
        }
        Ok(())
    }
}

/// Follows the store until the scheduler is dropped.
pub(crate) async fn follow(core: Weak<Core>) {
    while let Some(due) = core.upgrade().filter(|core| !core.is_closed()).map(|core| core.grants.wakeup()) {
        // Wakes after the period, or earlier when something was changed.
        let _ = timeout(PERIOD, due.woken()).await;
        let Some(core) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        if let Err(error) = core.refresh_grants().await {
            tracing::debug!(%error, "limits of organisations could not be read; retrying");
        }
    }
}
