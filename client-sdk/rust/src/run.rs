//! Training runs of a client.

use std::sync::Arc;

use crate::api::Request;
use crate::codec;
use crate::data::{Datum, Loss};
use crate::error::Error;
use crate::future::{Submitted, protobuf, text};
use crate::generated::types::{
    AdamParamsBody, LoadWeightsRequest, OptimStepRequest, SaveWeightsForSamplerRequest, SaveWeightsRequest,
};
use crate::order::Order;
use crate::output::{OptimOutput, TrainingOutput};
use crate::sampler::Sampler;
use crate::session::Session;

/// An adapter or a full set of weights, with its optimizer. Cheap to clone.
///
/// Requests are executed in the order in which the methods are awaited. Each method returns once its request is
/// accepted, so that requests may be submitted ahead of their results.
#[derive(Clone, Debug)]
pub struct TrainingRun {
    session: Arc<Session>,
    order: Arc<Order>,
    id: Arc<str>,
}

/// Options for saving a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct SaveOptions {
    overwrite: bool,
    ttl_seconds: Option<u64>,
}

impl SaveOptions {
    /// Keeps the checkpoint for good, and refuses to replace one of that name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a checkpoint of that name is replaced.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets the number of seconds until the checkpoint is deleted, at least an hour.
    #[must_use]
    pub fn ttl_seconds(mut self, seconds: u64) -> Self {
        self.ttl_seconds = Some(seconds);
        self
    }
}

impl TrainingRun {
    pub(crate) fn new(session: Arc<Session>, id: &str) -> Self {
        let order = Arc::new(Order::new(session.api.clone()));
        Self { session, order, id: id.into() }
    }

    /// Returns the id, `<session>:train:<n>`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Computes a loss.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn forward(&self, data: &[Datum], loss: &Loss) -> Result<Submitted<TrainingOutput>, Error> {
        self.pass(data, loss, true).await
    }

    /// Computes a loss and adds its gradient to the accumulated gradient.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn forward_backward(&self, data: &[Datum], loss: &Loss) -> Result<Submitted<TrainingOutput>, Error> {
        self.pass(data, loss, false).await
    }

    async fn pass(&self, data: &[Datum], loss: &Loss, forward_only: bool) -> Result<Submitted<TrainingOutput>, Error> {
        let build = |seq_id| {
            let message = codec::training_request(&self.id, seq_id, data, loss, forward_only)?;
            Request::post("forward_backward").protobuf(&message)
        };
        let request_id = self.order.submit(build).await?;
        Ok(Submitted::new(self.session.api.clone(), request_id, |answer| protobuf(answer, codec::training_output)))
    }

    /// Applies the accumulated gradient and clears it.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn optim_step(&self, adam: AdamParamsBody) -> Result<Submitted<OptimOutput>, Error> {
        let build = |seq_id| {
            Request::post("optim_step").json(&OptimStepRequest::new(&*self.id, seq_id).adam_params(adam.clone()))
        };
        let request_id = self.order.submit(build).await?;
        Ok(Submitted::new(self.session.api.clone(), request_id, |answer| answer.json()))
    }

    /// Saves weights and optimizer state; the result is a path for
    /// [`Client::resume_run`](crate::Client::resume_run).
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn save_state(&self, name: &str) -> Result<Submitted<String>, Error> {
        self.save_state_with(name, &SaveOptions::new()).await
    }

    /// Saves weights and optimizer state as [`save_state`](Self::save_state) does, with options.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn save_state_with(&self, name: &str, options: &SaveOptions) -> Result<Submitted<String>, Error> {
        let build = |seq_id| {
            let mut body = SaveWeightsRequest::new(&*self.id, name, seq_id).overwrite(options.overwrite);
            body.ttl_seconds = options.ttl_seconds;
            Request::post("save_weights").json(&body)
        };
        self.submit_for_path(build).await
    }

    /// Saves a checkpoint for sampling; the result is a path for
    /// [`Client::sampler_from`](crate::Client::sampler_from).
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn save_sampler(&self, name: &str) -> Result<Submitted<String>, Error> {
        let build = |seq_id| {
            let body = SaveWeightsForSamplerRequest::new(&*self.id, seq_id).path(name);
            Request::post("save_weights_for_sampler").json(&body)
        };
        self.submit_for_path(build).await
    }

    /// Replaces the run's weights with those of a checkpoint, and its optimizer state too if `optimizer` is true.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn load_state(&self, path: &str, optimizer: bool) -> Result<Submitted<String>, Error> {
        let build = |seq_id| {
            let body = LoadWeightsRequest::new(optimizer, path).model_id(&*self.id).seq_id(seq_id);
            Request::post("load_weights").json(&body)
        };
        self.submit_for_path(build).await
    }

    async fn submit_for_path(
        &self,
        build: impl Fn(u64) -> Result<Request, Error> + Send,
    ) -> Result<Submitted<String>, Error> {
        let request_id = self.order.submit(build).await?;
        Ok(Submitted::new(self.session.api.clone(), request_id, |answer| text(answer, "path")))
    }

    /// Returns a sampler of the current weights, without a checkpoint; waits for the requests before it.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn sampler(&self) -> Result<Sampler, Error> {
        let number = self.session.next_sampler();
        let build = |seq_id| {
            let body = SaveWeightsForSamplerRequest::new(&*self.id, seq_id).sampling_session_seq_id(number);
            Request::post("save_weights_for_sampler").json(&body)
        };
        let request_id = self.order.submit(build).await?;
        let read = |answer: &_| text(answer, "sampling_session_id");
        let id = Submitted::new(self.session.api.clone(), request_id, read).await?;
        Ok(Sampler::new(self.session.clone(), &id))
    }
}
