//! Calls about the usage of tenants.

use trainyard_protocol::{SessionId, TenantId};

use crate::store::usage;
use crate::{Error, HourlyUsage, RequestUsage, Scheduler, StorageInUse, StoredCheckpoint, Timestamp};

impl Scheduler {
    /// Returns the usage of requests that ended in a period, by hour and attribution. The period excludes its end.
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

    /// Returns a page of the usage of requests that ended in a period, in the order of their ends. If `after` is not
    /// empty, the page begins behind that request, which ended at the start of the period.
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

    /// Returns the checkpoints that were stored at some time in a period.
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

    /// Returns the metadata of existing sessions, a JSON object for each.
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

    /// Returns the present storage in use, by project and user.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn storage_in_use(&self, tenant: &TenantId) -> Result<Vec<StorageInUse>, Error> {
        usage::storage_in_use(&mut self.core.reader_of(tenant).await?, tenant).await
    }
}
