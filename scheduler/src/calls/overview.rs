//! Calls about the service as a whole: queues, workers, failures, speed.

use trainyard_protocol::{RunId, TenantId};

use crate::store::{overview, runs, workers};
use crate::{
    EngineReport, Error, FailedRequest, ListedRun, Page, QueuedRequests, RunProgress, RunRequest, Scheduler, Timestamp,
    TokenRate, WorkerStatus,
};

impl Scheduler {
    /// Returns the unfinished requests of all tenants. For the operator; others may see only their own.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn queued_by_tenant(&self) -> Result<Vec<QueuedRequests>, Error> {
        overview::queued_by_tenant(&mut self.core.system_reader().await?).await
    }

    /// Returns the workers with unexpired leases.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn worker_statuses(&self) -> Result<Vec<WorkerStatus>, Error> {
        let found = workers::live_workers(&mut self.core.system_reader().await?).await?;
        let status = |worker: workers::LiveWorker| {
            let models = worker.models.into_iter();
            let models = models.map(|(model, numerics)| (model, numerics.map(|numerics| numerics.arithmetic)));
            WorkerStatus { id: worker.id, models: models.collect(), engine: worker.engine }
        };
        Ok(found.into_iter().map(status).collect())
    }

    /// Returns the id of this process's worker, if it executes requests.
    pub fn own_worker(&self) -> Option<&str> {
        self.core.worker_id()
    }

    /// Returns the last report of the engine of this process's worker; all zero without one.
    pub fn engine_report(&self) -> EngineReport {
        EngineReport::from(&self.core.metrics.engine())
    }

    /// Returns the newest failures of a tenant after a given time.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn failed_requests(
        &self,
        tenant: &TenantId,
        after: Timestamp,
        limit: u32,
    ) -> Result<Vec<FailedRequest>, Error> {
        overview::failed_requests(&mut self.core.reader_of(tenant).await?, tenant, after, i64::from(limit)).await
    }

    /// Returns the tokens of a tenant's requests that ended after a given time, in intervals of some ms.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn token_rates(
        &self,
        tenant: &TenantId,
        after: Timestamp,
        stretch_ms: u32,
    ) -> Result<Vec<TokenRate>, Error> {
        overview::token_rates(&mut self.core.reader_of(tenant).await?, tenant, after, i64::from(stretch_ms.max(1)))
            .await
    }

    /// Returns a page of a tenant's runs, newest first, with facts about their sessions.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn newest_runs(&self, tenant: &TenantId, page: Page) -> Result<Vec<ListedRun>, Error> {
        overview::newest_runs(&mut self.core.reader_of(tenant).await?, tenant, page).await
    }

    /// Returns one of the tenant's runs, with facts about its session.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn listed_run(&self, tenant: &TenantId, run: &RunId) -> Result<ListedRun, Error> {
        overview::listed_run(&mut self.core.reader_of(tenant).await?, tenant, run).await
    }

    /// Returns the number of a tenant's runs, at most `most`.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn count_newest_runs(&self, tenant: &TenantId, most: u32) -> Result<u64, Error> {
        overview::count_newest_runs(&mut self.core.reader_of(tenant).await?, tenant, most).await
    }

    /// Returns the progress of some of the tenant's runs according to their newest metrics, in their order.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn progress_of_runs(&self, tenant: &TenantId, runs: &[RunId]) -> Result<Vec<RunProgress>, Error> {
        overview::progress_of_runs(&mut self.core.reader_of(tenant).await?, tenant, runs).await
    }

    /// Returns the newest requests of a run, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn newest_requests(&self, tenant: &TenantId, run: &RunId, limit: u32) -> Result<Vec<RunRequest>, Error> {
        let conn = &mut self.core.reader_of(tenant).await?;
        runs::run(conn, tenant, run).await?;
        overview::newest_requests(conn, tenant, run, i64::from(limit)).await
    }
}
