//! Resubmits samples whose results have expired.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::{Api, Request};
use crate::error::Error;
use crate::generated::types::{SampleRequest, SubmitResponse};

/// Session in which samples are submitted, with the numbers that tell them apart.
#[derive(Debug)]
pub(crate) struct SamplingSession {
    pub(crate) api: Api,
    pub(crate) id: String,
    numbers: AtomicU64,
}

impl SamplingSession {
    pub(crate) fn new(api: Api, id: &str) -> Self {
        Self { api, id: id.to_owned(), numbers: AtomicU64::new(0) }
    }
}

/// A sample that is resubmitted whenever its result has expired.
#[derive(Debug)]
pub(crate) struct Resample {
    pub(crate) session: Arc<SamplingSession>,
    pub(crate) body: SampleRequest,
}

impl Resample {
    /// Submits the sample under a new number. Returns the id of its future.
    pub(crate) async fn submit(&self) -> Result<String, Error> {
        let mut body = self.body.clone();
        body.seq_id = self.session.numbers.fetch_add(1, Ordering::Relaxed);
        let request = Request::post("asample").json(&body)?;
        Ok(self.session.api.send_for_json::<SubmitResponse>(request).await?.request_id)
    }
}
