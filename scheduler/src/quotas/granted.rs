//! Limits of tenants as this process last read them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use trainyard_protocol::TenantId;

use crate::context::wakeup::Wakeup;
use crate::quotas::{Grants, Policies, TenantPolicy};

/// The present grants, and the reasons to read them again.
pub(crate) struct Granted {
    present: RwLock<Arc<Grants>>,
    /// Wakes the task that reads them.
    due: Wakeup,
    /// Held while they are read.
    refreshing: tokio::sync::Mutex<()>,
    /// Number of known changes of keys, users and organisations.
    directory_version: AtomicU64,
}

impl Granted {
    /// Creates the grants of the configuration file, before the store was read.
    pub(crate) fn new(policies: Policies) -> Self {
        Self {
            present: RwLock::new(Arc::new(Grants { policies, ..Grants::default() })),
            due: Wakeup::default(),
            refreshing: tokio::sync::Mutex::default(),
            directory_version: AtomicU64::new(0),
        }
    }

    /// Returns the present limits and states of all tenants.
    pub(crate) fn present(&self) -> Arc<Grants> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the limits that a tenant is granted at present.
    pub(crate) fn policy(&self, tenant: &TenantId) -> TenantPolicy {
        *self.present.read().unwrap_or_else(PoisonError::into_inner).policies.of(tenant)
    }

    pub(crate) fn replace(&self, grants: Arc<Grants>) {
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = grants;
    }

    /// Waits until no other task reads the grants. None does while the result is held.
    pub(crate) async fn exclusive(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.refreshing.lock().await
    }

    /// Records that keys, users or organisations were changed, and lets the grants be read again.
    pub(crate) fn directory_changed(&self) {
        self.directory_version.fetch_add(1, Ordering::SeqCst);
        self.due.wake();
    }

    /// Returns a number that grows with each known change of keys, users and organisations.
    pub(crate) fn directory_version(&self) -> u64 {
        self.directory_version.load(Ordering::SeqCst)
    }

    /// Returns the wakeup of the task that reads the grants.
    pub(crate) fn wakeup(&self) -> Wakeup {
        self.due.clone()
    }
}
