//! Keeping up with the store: limits of organisations, and which of them are disabled.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::time::timeout;
use trainyard_protocol::TenantId;

use crate::calls::sessions::EndSession;
use crate::context::core::Core;
use crate::quotas::Grants;
use crate::store::organisation_limits;
use crate::{Error, Policies, Scheduler, SessionStatus, TenantPolicy};

/// How long a change may stay unknown of which nothing was said: the command line can't notify a process on SQLite, and a
/// notification may get lost. Well below the second that is promised.
const PERIOD: Duration = Duration::from_millis(500);

impl Scheduler {
    /// Quotas, rate limits and weights of tenants, by the configuration file and by the store.
    pub fn policies(&self) -> Policies {
        self.core.grants().policies.clone()
    }

    /// What a tenant is granted at the moment.
    pub fn policy(&self, tenant: &TenantId) -> TenantPolicy {
        self.core.policy(tenant)
    }

    /// Whether an organisation is disabled: none of its keys and tokens is accepted.
    pub fn is_disabled(&self, organisation: &TenantId) -> bool {
        self.core.grants().disabled.contains(organisation)
    }
}

impl Core {
    /// What is known of all tenants.
    pub(crate) fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.grants.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a tenant is granted at the moment.
    pub(crate) fn policy(&self, tenant: &TenantId) -> TenantPolicy {
        *self.grants.read().unwrap_or_else(PoisonError::into_inner).policies.of(tenant)
    }

    /// Reads what the store grants, and goes by it from now on. Sessions of organisations that were disabled since the last
    /// time end in the background; should that fail, the next maintenance does it.
    pub(crate) async fn refresh_grants(self: &Arc<Self>) -> Result<(), Error> {
        let _one = self.refreshing_grants.lock().await;
        let stored = organisation_limits::granted(&mut self.system_reader().await?).await?;
        let (grants, former) = (Arc::new(Grants::join(&self.options.policies, &stored)), self.grants());
        if grants == former {
            return Ok(());
        }
        *self.grants.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&grants);
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

    /// Ends the sessions of disabled organisations as if their heartbeats had stopped: what waits is cancelled, samples are
    /// too, and a training request that is being executed finishes.
    pub(crate) async fn end_sessions_of_disabled(self: &Arc<Self>) -> Result<(), Error> {
        let sessions = organisation_limits::sessions_of_disabled(&mut self.system_reader().await?).await?;
        for session in sessions {
            let end = EndSession {
                tenant: None,
                session: session.clone(),
                status: SessionStatus::Expired,
                without_heartbeat_since: None,
            };
            if self.call(end).await?.now {
                tracing::info!(%session, "session expired: its organisation is disabled");
            }
        }
        Ok(())
    }
}

/// Keeps up with the store until the scheduler is gone.
pub(crate) async fn follow(core: Weak<Core>) {
    while let Some(due) = core.upgrade().filter(|core| !core.is_closed()).map(|core| Arc::clone(&core.grants_due)) {
        // In time, or because something was changed.
        let _ = timeout(PERIOD, due.notified()).await;
        let Some(core) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        if let Err(error) = core.refresh_grants().await {
            tracing::debug!(%error, "limits of organisations could not be read; retrying");
        }
    }
}
