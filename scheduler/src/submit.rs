//! Accepting requests.

use trainyard_protocol::{RunId, TenantId};

use crate::{Error, NewRun, RunSubmission, SampleSubmission, Scheduler, Submitted};

impl Scheduler {
    /// Accepts the creation of a run, identified by (session, model_seq_id).
    pub async fn submit_create(&self, _tenant: &TenantId, _new: NewRun) -> Result<(RunId, Submitted), Error> {
        Err(Error::Store("x"))
    }

    /// Accepts a request to a run, identified by (run, seq_id), in any order of arrival.
    pub async fn submit_run(&self, _tenant: &TenantId, _submission: RunSubmission) -> Result<Submitted, Error> {
        Err(Error::Store("x"))
    }

    /// Accepts a sample, identified by (sampling_session, seq_id).
    pub async fn submit_sample(&self, _tenant: &TenantId, _submission: SampleSubmission) -> Result<Submitted, Error> {
        Err(Error::Store("x"))
    }
}
