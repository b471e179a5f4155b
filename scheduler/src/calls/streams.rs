//! Streams of tokens while samples are executed.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use trainyard_protocol::{RequestId, SampleProgress, TenantId};

use crate::context::core::Core;
use crate::{Error, Scheduler, WatchedSample};

/// A watched sample; dropping the value ends the watch.
pub struct SampleWatch {
    request: RequestId,
    number: u64,
    progress: UnboundedReceiver<SampleProgress>,
    core: Arc<Core>,
}

impl SampleWatch {
    /// Waits for the next tokens: each once, in order within their sequence. Tokens shortly before the sample's end may
    /// come only with its result. Dropping the future loses nothing.
    pub async fn next(&mut self) -> SampleProgress {
        match self.progress.recv().await {
            Some(progress) => progress,
            // The sender lives as long as the watch.
            None => std::future::pending().await,
        }
    }
}

impl Drop for SampleWatch {
    fn drop(&mut self) {
        self.core.progress.unwatch(&self.request, self.number);
    }
}

impl Scheduler {
    /// Watches a sample, wherever it is executed. Tokens are reported from the sample's first one on.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown request, [`Error::Gone`] if its result was dropped.
    pub async fn watch_sample(&self, tenant: &TenantId, request: &RequestId) -> Result<SampleWatch, Error> {
        self.look(tenant, request).await?;
        let (number, progress) = self.core.progress.watch(request);
        Ok(SampleWatch { request: request.clone(), number, progress, core: Arc::clone(&self.core) })
    }

    /// Returns the samples whose tokens must be reported during execution. Cheap if there are none.
    pub fn watched_samples(&self) -> Vec<WatchedSample> {
        self.core.progress.watched(self.core.now())
    }

    /// Reports tokens of a sample that this process's worker executes.
    pub fn report_progress(&self, request: &RequestId, progress: Vec<SampleProgress>) {
        self.core.progress.report(request, &progress);
    }
}
