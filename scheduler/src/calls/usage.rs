//! Calls about the usage of tenants.

use trainyard_protocol::{SessionId, TenantId};

use crate::store::{usage, usage_by_hour};
use crate::{Error, HourlyUsage, RequestUsage, Scheduler, StorageInUse, StoredCheckpoint, Timestamp};

impl Scheduler {
    /// Returns the usage of requests that ended from `from` to before `to`, by hour and attribution.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn hourly_usage(
        &self,
        tenant: &TenantId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<HourlyUsage>, Error> {
        usage::hourly_usage(&mut self.core.reader_of(tenant).await?, tenant, from, to).await
    }

    /// Returns a page of the usage of requests that ended from `from` to before `to`, in the order of their ends. If
    /// `after` is not empty, the page begins behind that request, which ended at `from`.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn request_usage(
        &self,
        tenant: &TenantId,
        from: Timestamp,
        to: Timestamp,
        after: &str,
        limit: u32,
    ) -> Result<Vec<RequestUsage>, Error> {
        usage::request_usage(&mut self.core.reader_of(tenant).await?, tenant, from, to, after, limit).await
    }

    /// Returns the time from which the usage of a tenant's single requests is complete.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn requests_complete_from(&self, tenant: &TenantId) -> Result<Timestamp, Error> {
        let kept = usage_by_hour::kept_from(&mut self.core.reader_of(tenant).await?, tenant).await?;
        Ok(kept.max(self.core.now().minus(self.core.options.usage_retention)))
    }

    /// Returns the checkpoints that were stored at some time from `from` to before `to`.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn stored_checkpoints(
        &self,
        tenant: &TenantId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<StoredCheckpoint>, Error> {
        usage::stored_checkpoints(&mut self.core.reader_of(tenant).await?, tenant, from, to).await
    }

    /// Returns the metadata of existing sessions, a JSON object for each.
    ///
    /// # Errors
    /// Fails if the store can't be read.
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
    /// Fails if the store can't be read.
    pub async fn storage_in_use(&self, tenant: &TenantId) -> Result<Vec<StorageInUse>, Error> {
        usage::storage_in_use(&mut self.core.reader_of(tenant).await?, tenant).await
    }
}
