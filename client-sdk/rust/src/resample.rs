//! Samples that may be taken anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::{Api, Request};
use crate::error::Error;
use crate::generated::types::{SampleRequest, SubmitResponse};

/// Where samples are submitted, with the numbers that tell them apart.
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

/// A sample, for as often as its result expires.
#[derive(Debug)]
pub(crate) struct Resample {
    pub(crate) session: Arc<SamplingSession>,
    pub(crate) body: SampleRequest,
}

impl Resample {
    /// Submits it under a new number; returns a future's id.
    pub(crate) async fn submit(&self) -> Result<String, Error> {
        let mut body = self.body.clone();
        body.seq_id = self.session.numbers.fetch_add(1, Ordering::Relaxed);
        let request = Request::post("asample").json(&body)?;
        Ok(self.session.api.send_for_json::<SubmitResponse>(request).await?.request_id)
    }
}
