//! What the worker asks of the scheduler.

use std::future::Future;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use trainyard_protocol::{EngineStats, RequestId, SampleProgress, TenantId, TinkerPath};
use trainyard_scheduler::{Effect, Encode, Error, Measured, Outcome, Scheduler, WatchedSample, WorkItem};

/// Where work comes from and results go.
pub trait Mailbox: Send + Sync + 'static {
    /// What is ready now.
    fn take_work(&self) -> Vec<WorkItem>;
    /// What is ready, waiting for it.
    fn wait_work(&self, timeout: Duration) -> Vec<WorkItem>;
    /// The tenant's share of a busy engine.
    fn weight(&self, tenant: &TenantId) -> NonZeroU32;
    /// Records what the engine has done and holds.
    fn observe_engine(&self, stats: EngineStats);
    /// The folder, in the storage, that a load reads; it stays there until the load has ended.
    fn pin_load(
        &self,
        tenant: &TenantId,
        request: &RequestId,
        path: &TinkerPath,
    ) -> impl Future<Output = Result<PathBuf, Error>> + Send;
    /// Reports samples that the engine executes from now on; returns at once.
    fn samples_admitted(&self, requests: &[RequestId]);
    /// The samples whose tokens somebody waits for.
    fn watched_samples(&self) -> Vec<WatchedSample>;
    /// Reports tokens of a watched sample; returns at once.
    fn report_progress(&self, request: &RequestId, progress: Vec<SampleProgress>);
    /// Reports a request's end; returns at once.
    fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>);
    /// Reports a request's success with what it used and measured, whose result is still to be encoded; returns at once.
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
