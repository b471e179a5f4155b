//! Reads the metrics of training requests, and waits for more.

use std::sync::Arc;

use trainyard_protocol::{RunId, TenantId};

use crate::context::core::Core;
use crate::context::waiters::Waiter;
use crate::store::{run_metrics, runs};
use crate::{Error, MetricsRange, RunMetrics, Scheduler};

/// Number of rows in a page, which are read at once.
const PAGE: i64 = 4_000;

/// Reader of a run's metrics, page by page in the order of its requests.
pub struct MetricsReader {
    core: Arc<Core>,
    tenant: TenantId,
    run: RunId,
    range: MetricsRange,
    after: (i64, i64),
    done: bool,
}

impl MetricsReader {
    /// Returns the next page; empty at the end. Called again after the end, it returns metrics recorded since.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn page(&mut self) -> Result<Vec<RunMetrics>, Error> {
        if std::mem::take(&mut self.done) {
            return Ok(Vec::new());
        }
        let conn = &mut self.core.reader_of(&self.tenant).await?;
        let (step, seq_id) = self.after;
        let page = run_metrics::metrics_of_run(conn, &self.tenant, &self.run, &self.range, step, seq_id, PAGE).await?;
        if let Some(last) = page.last() {
            self.after = (last.step, last.seq_id);
            // The page that ends the run's metrics is known by its length.
            self.done = (page.len() as i64) < PAGE;
        }
        Ok(page)
    }
}

/// Registered interest in a run's metrics.
pub struct MetricsWatch(Waiter<RunId>);

impl MetricsWatch {
    /// Waits until metrics are recorded after [`Scheduler::watch_metrics`], here or in another process.
    pub async fn recorded(&mut self) {
        self.0.woken().await;
    }
}

impl Scheduler {
    /// Returns a reader of the metrics of one of the tenant's runs.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn run_metrics(
        &self,
        tenant: &TenantId,
        run: &RunId,
        range: MetricsRange,
    ) -> Result<MetricsReader, Error> {
        runs::run(&mut self.core.reader_of(tenant).await?, tenant, run).await?;
        let (tenant, run) = (tenant.clone(), run.clone());
        let after = (range.steps.0, -1);
        Ok(MetricsReader { core: Arc::clone(&self.core), tenant, run, range, after, done: false })
    }

    /// Registers interest in a run's metrics. Call this before reading them, so that nothing is missed.
    pub fn watch_metrics(&self, run: &RunId) -> MetricsWatch {
        MetricsWatch(self.core.waiters.await_metrics(run))
    }
}
