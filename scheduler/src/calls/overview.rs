//! Looking at the service as a whole: queues, workers, failures, speed.

use trainyard_protocol::{RunId, TenantId};

use crate::store::{overview, runs, workers};
use crate::{
    EngineReport, Error, FailedRequest, ListedRun, Page, QueuedRequests, RunProgress, RunRequest, Scheduler, Timestamp,
    TokenRate, WorkerStatus,
};

impl Scheduler {
    /// Unfinished requests of all tenants. For the operator; anybody else may see its own alone.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn queued_by_tenant(&self) -> Result<Vec<QueuedRequests>, Error> {
        overview::queued_by_tenant(&mut self.core.system_reader().await?).await
    }

    /// Workers whose leases have not expired.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn worker_statuses(&self) -> Result<Vec<WorkerStatus>, Error> {
        let found = workers::live_workers(&mut self.core.system_reader().await?).await?;
        let status = |worker: workers::LiveWorker| {
            let models = worker.models.into_iter();
            let models = models.map(|(model, numerics)| (model, numerics.map(|numerics| numerics.arithmetic)));
            WorkerStatus { id: worker.id, models: models.collect(), engine: worker.engine }
        };
        Ok(found.into_iter().map(status).collect())
    }

    /// The id of this process's worker, if it executes requests.
    pub fn own_worker(&self) -> Option<&str> {
        self.core.worker_id()
    }

    /// What the engine of this process's worker last reported; all zero where there is none.
    pub fn engine_report(&self) -> EngineReport {
        EngineReport::from(&self.core.metrics.engine())
    }

    /// The newest failures of a tenant after a moment.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn failed_requests(
        &self,
        tenant: &TenantId,
        after: Timestamp,
        limit: u32,
    ) -> Result<Vec<FailedRequest>, Error> {
        overview::failed_requests(&mut self.core.reader_of(tenant).await?, tenant, after, i64::from(limit)).await
    }

    /// Tokens of a tenant's requests that ended after a moment, in stretches of so many ms.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn token_rates(
        &self,
        tenant: &TenantId,
        after: Timestamp,
        stretch_ms: u32,
    ) -> Result<Vec<TokenRate>, Error> {
        overview::token_rates(&mut self.core.reader_of(tenant).await?, tenant, after, i64::from(stretch_ms.max(1)))
            .await
    }

    /// A page of a tenant's runs, the newest first, with what their sessions say of them.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn newest_runs(&self, tenant: &TenantId, page: Page) -> Result<Vec<ListedRun>, Error> {
        overview::newest_runs(&mut self.core.reader_of(tenant).await?, tenant, page).await
    }

    /// One of the tenant's runs, with what its session says of it.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn listed_run(&self, tenant: &TenantId, run: &RunId) -> Result<ListedRun, Error> {
        overview::listed_run(&mut self.core.reader_of(tenant).await?, tenant, run).await
    }

    /// How many runs a tenant has; `most` when it has more.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn count_newest_runs(&self, tenant: &TenantId, most: u32) -> Result<u64, Error> {
        overview::count_newest_runs(&mut self.core.reader_of(tenant).await?, tenant, most).await
    }

    /// What the newest metrics of some of the tenant's runs say, in their order.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn progress_of_runs(&self, tenant: &TenantId, runs: &[RunId]) -> Result<Vec<RunProgress>, Error> {
        overview::progress_of_runs(&mut self.core.reader_of(tenant).await?, tenant, runs).await
    }

    /// The newest requests of a run, the newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn newest_requests(&self, tenant: &TenantId, run: &RunId, limit: u32) -> Result<Vec<RunRequest>, Error> {
        let conn = &mut self.core.reader_of(tenant).await?;
        runs::run(conn, tenant, run).await?;
        overview::newest_requests(conn, tenant, run, i64::from(limit)).await
    }
}
