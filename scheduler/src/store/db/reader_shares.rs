//! Shares of tenants in the connections that read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use trainyard_protocol::TenantId;

use crate::context::error::TooManyReads;
use crate::context::lock::lock;

/// A tenant's right to one of the connections; the service's own reads need none.
pub(crate) type ReaderShare = Option<OwnedSemaphorePermit>;

/// Bounds the connections that a tenant holds at a time to half of them, so that reads of one tenant, however many and
/// slow, leave connections for the others.
#[derive(Clone)]
pub(super) struct ReaderShares {
    /// Connections of a tenant at most.
    most: usize,
    /// Tenants that read or wait to read.
    tenants: Arc<Mutex<BTreeMap<TenantId, Weak<Semaphore>>>>,
}

impl ReaderShares {
    /// Shares of so many connections; a tenant may hold one in any case.
    pub(super) fn of(connections: usize) -> Self {
        Self { most: (connections / 2).max(1), tenants: Arc::default() }
    }

    /// Waits until the tenant may hold another connection. Reads of a tenant are served in order, and the service's own, without
    /// one, at once.
    ///
    /// # Errors
    /// [`TooManyReads`] if the tenant's other reads hold its share until `deadline`.
    pub(super) async fn enter(&self, tenant: Option<&TenantId>, deadline: Instant) -> Result<ReaderShare, sqlx::Error> {
        let Some(tenant) = tenant else { return Ok(None) };
        match timeout_at(deadline, self.share_of(tenant).acquire_owned()).await {
            Ok(share) => share.map(Some).map_err(|_| sqlx::Error::PoolClosed),
            Err(_) => Err(sqlx::Error::Configuration(Box::new(TooManyReads))),
        }
    }

    fn share_of(&self, tenant: &TenantId) -> Arc<Semaphore> {
        let mut tenants = lock(&self.tenants);
        if let Some(share) = tenants.get(tenant).and_then(Weak::upgrade) {
            return share;
        }
        tenants.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.most));
        tenants.insert(tenant.clone(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use super::*;
    use crate::Error;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    async fn enters(shares: &ReaderShares, tenant: Option<&TenantId>) -> Option<ReaderShare> {
        shares.enter(tenant, soon()).await.ok()
    }

    #[tokio::test]
    async fn a_tenant_holds_half_of_the_connections_and_leaves_the_others() {
        let shares = ReaderShares::of(5);
        let [a, b] = ["a", "b"].map(TenantId::new);
        let mut held = vec![enters(&shares, Some(&a)).await.unwrap(), enters(&shares, Some(&a)).await.unwrap()];
        assert!(enters(&shares, Some(&a)).await.is_none());
        assert!(enters(&shares, Some(&b)).await.is_some_and(|share| share.is_some()));
        assert!(enters(&shares, None).await.is_some_and(|share| share.is_none()));
        held.pop();
        assert!(enters(&shares, Some(&a)).await.is_some());
        drop(held);
        enters(&shares, Some(&b)).await.unwrap();
        assert_eq!(lock(&shares.tenants).len(), 1, "tenants that read nothing are forgotten");
    }

    #[tokio::test]
    async fn a_tenant_that_holds_its_share_for_long_reads_too_much() {
        let (shares, a) = (ReaderShares::of(2), TenantId::new("a"));
        let _held = shares.enter(Some(&a), soon()).await.unwrap();
        let error = shares.enter(Some(&a), soon()).await.unwrap_err();
        assert_eq!(Error::database("read", &error), Error::TooManyReads("read"));
    }

    #[tokio::test]
    async fn a_tenant_may_hold_the_only_connection() {
        let shares = ReaderShares::of(1);
        assert!(enters(&shares, Some(&TenantId::new("a"))).await.is_some());
    }
}
