//! Waiting for results.

use std::time::Duration;

use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};

use crate::{Completions, Error, Poll, Scheduler};

impl Scheduler {
    /// What came of a request; waits up to `wait` for it to finish. Can be repeated.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown request, [`Error::Gone`] when its result was dropped.
    pub async fn poll(&self, _tenant: &TenantId, _request: &RequestId, _wait: Duration) -> Result<Poll, Error> {
        Err(Error::Store("x"))
    }

    /// Samples of one clone that finished after the cursor `after`; waits up to `wait` for the first.
    pub async fn completions(
        &self,
        _tenant: &TenantId,
        _sampling_session: &SamplingSessionId,
        _clone_id: i64,
        _after: i64,
        _wait: Duration,
    ) -> Result<Completions, Error> {
        Err(Error::Store("x"))
    }

    /// Notes that the client has these results. Unknown ids are ignored.
    pub async fn acknowledge(&self, _tenant: &TenantId, _requests: &[RequestId]) -> Result<(), Error> {
        Err(Error::Store("x"))
    }

    /// Gives up a sample. Repetitions are accepted, and a finished sample stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown request, [`Error::Invalid`] when it is no sample.
    pub async fn cancel(&self, _tenant: &TenantId, _request: &RequestId) -> Result<(), Error> {
        Err(Error::Store("x"))
    }
}
