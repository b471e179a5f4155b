//! What tenants used.

use trainyard_protocol::{SessionId, TenantId};

use crate::store::usage;
use crate::{Error, HourlyUsage, RequestUsage, Scheduler, StorageInUse, StoredCheckpoint, Timestamp};

impl Scheduler {
    /// What requests used that ended from one time to before another, by hour and attribution.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn hourly_usage(
        &self,
        tenant: &TenantId,
        period: (Timestamp, Timestamp),
    ) -> Result<Vec<HourlyUsage>, Error> {
        usage::hourly_usage(&mut self.core.reader_of(tenant).await?, tenant, period).await
    }

    /// A page of what requests used that ended from one time to before another, in the order of their ends; behind the
    /// request `after`, which ended when the period begins, if that is not empty.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn request_usage(
        &self,
        tenant: &TenantId,
        period: (Timestamp, Timestamp),
        after: &str,
        limit: u32,
    ) -> Result<Vec<RequestUsage>, Error> {
        usage::request_usage(&mut self.core.reader_of(tenant).await?, tenant, period, after, limit).await
    }

    /// Checkpoints that were stored at some time from one time to before another.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn stored_checkpoints(
        &self,
        tenant: &TenantId,
        period: (Timestamp, Timestamp),
    ) -> Result<Vec<StoredCheckpoint>, Error> {
        usage::stored_checkpoints(&mut self.core.reader_of(tenant).await?, tenant, period).await
    }

    /// The metadata of sessions that are there: a JSON object for each.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn metadata_of_sessions(
        &self,
        tenant: &TenantId,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionId, serde_json::Value)>, Error> {
        usage::metadata_of_sessions(&mut self.core.reader_of(tenant).await?, tenant, sessions).await
    }

    /// What is stored now, by project and user.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn storage_in_use(&self, tenant: &TenantId) -> Result<Vec<StorageInUse>, Error> {
        usage::storage_in_use(&mut self.core.reader_of(tenant).await?, tenant).await
    }
}
