//! The worker's view of the scheduler.

use std::future::Future;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use trainyard_protocol::{EngineStats, RequestId, SampleProgress, TenantId, TinkerPath};
use trainyard_scheduler::{Effect, Encode, Error, Measured, Outcome, Scheduler, WatchedSample, WorkItem};

/// Source of work and receiver of results.
pub trait Mailbox: Send + Sync + 'static {
    /// Takes the work that is ready now.
    fn take_work(&self) -> Vec<WorkItem>;
    /// Takes the work that is ready, waiting for it up to `timeout`.
    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem>;
    /// Returns the tenant's share of a busy engine.
    fn weight(&self, tenant: &TenantId) -> NonZeroU32;
    /// Records the engine's counters and contents.
    fn observe_engine(&self, stats: EngineStats);
    /// Returns the storage folder that a load reads. The folder is kept until the load has ended.
    fn pin_load(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        path: &TinkerPath,
    ) -> impl Future<Output = Result<PathBuf, Error>> + Send;
    /// Reports samples that the engine executes from now on. Returns at once.
    fn samples_admitted(&self, requests: &[RequestId]);
    /// Returns the samples whose tokens a client waits for.
    fn watched_samples(&self) -> Vec<WatchedSample>;
    /// Returns whether the queued work contains an order to abandon this request of a run.
    fn is_abandoned(&self, request: &RequestId) -> bool;
    /// Reports tokens of a watched sample. Returns at once.
    fn report_progress(&self, request: &RequestId, progress: Vec<SampleProgress>);
    /// Reports the end of a request. Returns at once.
    fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>);
    /// Reports a request's success with what it used and measured; `encode` makes its result later. Returns at once.
    fn complete_encoded_by(&self, request: RequestId, measured: Measured, encode: Encode);
}

impl Mailbox for Scheduler {
    fn take_work(&self) -> Vec<WorkItem> {
        Self::take_work(self)
    }

    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem> {
        Self::wait_work(self, timeout)
    }

    fn weight(&self, tenant: &TenantId) -> NonZeroU32 {
        self.policy(tenant).weight
    }

    fn observe_engine(&self, stats: EngineStats) {
        self.metrics().set_engine(stats);
    }

    fn pin_load(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        path: &TinkerPath,
    ) -> impl Future<Output = Result<PathBuf, Error>> + Send {
        Self::pin_load(self, tenant, request, path)
    }

    fn samples_admitted(&self, requests: &[RequestId]) {
        Self::samples_admitted(self, requests);
    }

    fn watched_samples(&self) -> Vec<WatchedSample> {
        Self::watched_samples(self)
    }

    fn is_abandoned(&self, request: &RequestId) -> bool {
        Self::is_abandoned(self, request)
    }

    fn report_progress(&self, request: &RequestId, progress: Vec<SampleProgress>) {
        Self::report_progress(self, request, progress);
    }

    fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>) {
        Self::complete(self, request, outcome, effects);
    }

    fn complete_encoded_by(&self, request: RequestId, measured: Measured, encode: Encode) {
        Self::complete_encoded_by(self, request, measured, encode);
    }
}
