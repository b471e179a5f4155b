//! Clients of this process that wait for changes.

use trainyard_protocol::{RequestId, RunId, SamplingSessionId};

use crate::context::waiters::{Waiter, Waiters};

/// A clone of a sampling session, whose samples clients see in order.
pub(crate) type SampleStream = (SamplingSessionId, i64);

/// Clients that wait, by the change for which they wait.
#[derive(Default)]
pub(crate) struct ClientWaiters {
    requests: Waiters<RequestId>,
    samples: Waiters<SampleStream>,
    metrics: Waiters<RunId>,
    stored_samples: Waiters<RunId>,
}

impl ClientWaiters {
    /// Registers interest in the end of a request.
    pub(crate) fn await_request(&self, request: &RequestId) -> Waiter<RequestId> {
        self.requests.register(request.clone())
    }

    /// Registers interest in the end of samples of a stream.
    pub(crate) fn await_samples(&self, stream: SampleStream) -> Waiter<SampleStream> {
        self.samples.register(stream)
    }

    /// Registers interest in a run's metrics.
    pub(crate) fn await_metrics(&self, run: &RunId) -> Waiter<RunId> {
        self.metrics.register(run.clone())
    }

    /// Registers interest in a run's stored samples.
    pub(crate) fn await_stored_samples(&self, run: &RunId) -> Waiter<RunId> {
        self.stored_samples.register(run.clone())
    }

    /// Wakes the clients that wait for a request, which has ended.
    pub(crate) fn request_ended(&self, request: &RequestId) {
        self.requests.wake(request);
    }

    /// Wakes the clients that wait for samples of a stream, of which one has ended.
    pub(crate) fn sample_ended(&self, stream: &SampleStream) {
        self.samples.wake(stream);
    }

    /// Wakes the clients that wait for a run's metrics, which have grown.
    pub(crate) fn metrics_recorded(&self, run: &RunId) {
        self.metrics.wake(run);
    }

    /// Wakes the clients that wait for a run's stored samples, which have changed.
    pub(crate) fn stored_samples_changed(&self, run: &RunId) {
        self.stored_samples.wake(run);
    }

    /// Returns the requests for which clients wait, in no particular order.
    pub(crate) fn awaited_requests(&self) -> Vec<RequestId> {
        self.requests.keys()
    }

    /// Wakes all clients except those that wait for requests, because notifications may have been missed.
    pub(crate) fn look_again(&self) {
        self.samples.wake_all();
        self.metrics.wake_all();
        self.stored_samples.wake_all();
    }
}
