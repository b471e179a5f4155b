//! The client, and the settings that it is made with.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::{Api, Request};
use crate::error::Error;
use crate::events::EventStream;
use crate::future::{Submitted, text};
use crate::generated::types::{
    ChatRequest, CompletionRequest, CreateModelRequest, CreateSamplingSessionRequest, CreateSamplingSessionResponse,
    CreateSessionRequest, FinishKind, LoadWeightsRequest, LoraConfig, MessagesRequest, ResponsesRequest,
    SubmitResponse,
};
use crate::retry::RetryPolicy;
use crate::run::TrainingRun;
use crate::sampler::Sampler;
use crate::session::Session;

const DEFAULT_URL: &str = "http://127.0.0.1:8000";
const DEFAULT_KEY: &str = "tml-local";

/// A connection to a Trainyard server, or to another server with the same protocol. Cheap to clone.
///
/// [`close`](Self::close) ends the session, and the service unloads its runs. Without that, the service does so some
/// time after the last clone has been dropped, together with its runs and samplers.
#[derive(Clone, Debug)]
pub struct Client {
    session: Arc<Session>,
}

/// The settings of a [`Client`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClientBuilder {
    base_url: Option<String>,
    api_key: Option<String>,
    retry: RetryPolicy,
    tags: Vec<String>,
    project_id: Option<String>,
    user_metadata: Map<String, Value>,
}

impl ClientBuilder {
    /// Sets the server's address. The default is `TRAINYARD_BASE_URL` or `TINKER_BASE_URL`, else port 8000 of this
    /// machine.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets the API key. The default is `TRAINYARD_API_KEY` or `TINKER_API_KEY`, else a key for a server without keys.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets how long failures are retried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Adds a label to the session.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Sets the project under which the session is counted.
    pub fn project_id(mut self, id: impl Into<String>) -> Self {
        self.project_id = Some(id.into());
        self
    }

    /// Adds a value that is stored with the session.
    pub fn user_metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.user_metadata.insert(name.into(), value.into());
        self
    }

    /// Makes the client without sending anything.
    ///
    /// # Errors
    ///
    /// [`Error::Configuration`] when the address or the key can't be used.
    pub fn build(self) -> Result<Client, Error> {
        let url = self.base_url.or_else(|| environment("BASE_URL")).unwrap_or_else(|| DEFAULT_URL.into());
        let key = self.api_key.or_else(|| environment("API_KEY")).unwrap_or_else(|| DEFAULT_KEY.into());
        let mut body =
            CreateSessionRequest::new().sdk_version(env!("CARGO_PKG_VERSION")).user_metadata(self.user_metadata);
        body.tags = self.tags;
        body.project_id = self.project_id;
        let session = Session::new(Api::new(&url, &key, self.retry)?, &body)?;
        Ok(Client { session })
    }
}

/// A run to create.
#[derive(Clone, Debug)]
#[must_use]
pub struct NewRun {
    base_model: String,
    lora: LoraConfig,
    user_metadata: Map<String, Value>,
}

impl NewRun {
    /// Describes an adapter of rank 32 on a base model.
    pub fn of(base_model: impl Into<String>) -> Self {
        Self { base_model: base_model.into(), lora: LoraConfig::new(32), user_metadata: Map::new() }
    }

    /// Sets the adapter; rank 0 trains all parameters.
    pub fn lora(mut self, lora: LoraConfig) -> Self {
        self.lora = lora;
        self
    }

    /// Adds a value that is stored with the run.
    pub fn user_metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.user_metadata.insert(name.into(), value.into());
        self
    }
}

/// A run that starts from a checkpoint.
#[derive(Clone, Debug)]
#[must_use]
pub struct ResumeRun {
    path: String,
    base_model: Option<String>,
    optimizer: bool,
}

impl ResumeRun {
    /// Starts from the weights and the optimizer's state of a checkpoint.
    pub fn from(path: impl Into<String>) -> Self {
        Self { path: path.into(), base_model: None, optimizer: true }
    }

    /// Sets another name for the checkpoint's base model.
    pub fn base_model(mut self, name: impl Into<String>) -> Self {
        self.base_model = Some(name.into());
        self
    }

    /// Sets whether the optimizer's state is restored.
    pub fn optimizer(mut self, restored: bool) -> Self {
        self.optimizer = restored;
        self
    }
}

impl Client {
    /// Returns a builder for a client with settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Returns every operation of the service by its name.
    pub fn api(&self) -> &Api {
        &self.session.api
    }

    /// Returns the id of this client's session, which is opened on first use.
    ///
    /// # Errors
    ///
    /// The server refuses the session or does not answer.
    pub async fn session_id(&self) -> Result<&str, Error> {
        self.session.id().await
    }

    /// Creates a run, and waits until it exists.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the model is not served; others when the server does not answer.
    pub async fn create_run(&self, run: NewRun) -> Result<TrainingRun, Error> {
        let session = self.session.id().await?;
        let body = CreateModelRequest::new(run.base_model, self.session.next_run(), session)
            .lora_config(run.lora)
            .user_metadata(run.user_metadata);
        self.run(Request::post("create_model").json(&body)?).await
    }

    /// Creates a run that starts from a checkpoint of [`TrainingRun::save_state`], with its optimizer's state.
    ///
    /// # Errors
    ///
    /// The checkpoint does not exist, or the server does not answer.
    pub async fn resume_run(&self, path: &str) -> Result<TrainingRun, Error> {
        self.resume_run_with(ResumeRun::from(path)).await
    }

    /// Creates a run that starts from a checkpoint, with options.
    ///
    /// # Errors
    ///
    /// The checkpoint does not exist, or the server does not answer.
    pub async fn resume_run_with(&self, run: ResumeRun) -> Result<TrainingRun, Error> {
        let session = self.session.id().await?;
        let mut body = LoadWeightsRequest::new(run.optimizer, run.path);
        body.session_id = Some(session.to_owned());
        body.model_seq_id = Some(self.session.next_run());
        body.base_model = run.base_model;
        self.run(Request::post("load_weights").json(&body)?).await
    }

    async fn run(&self, request: Request) -> Result<TrainingRun, Error> {
        let accepted: SubmitResponse = self.session.api.send_for_json(request).await?;
        let read = |answer: &_| text(answer, "model_id");
        let id = Submitted::new(self.session.api.clone(), accepted.request_id, read).await?;
        Ok(TrainingRun::new(self.session.clone(), &id))
    }

    /// Samples from a base model.
    ///
    /// # Errors
    ///
    /// The model is not served, or the server does not answer.
    pub async fn sampler(&self, base_model: &str) -> Result<Sampler, Error> {
        self.open_sampler(|body| body.base_model(base_model)).await
    }

    /// Samples from a checkpoint of [`TrainingRun::save_sampler`].
    ///
    /// # Errors
    ///
    /// The checkpoint does not exist, or the server does not answer.
    pub async fn sampler_from(&self, path: &str) -> Result<Sampler, Error> {
        self.open_sampler(|body| body.model_path(path)).await
    }

    async fn open_sampler(
        &self,
        source: impl FnOnce(CreateSamplingSessionRequest) -> CreateSamplingSessionRequest,
    ) -> Result<Sampler, Error> {
        let session = self.session.id().await?;
        let body = source(CreateSamplingSessionRequest::new(self.session.next_sampler(), session));
        let request = Request::post("create_sampling_session").json(&body)?;
        let opened: CreateSamplingSessionResponse = self.session.api.send_for_json(request).await?;
        Ok(Sampler::new(self.session.clone(), &opened.sampling_session_id))
    }

    /// Answers a conversation in chunks, as they are sampled. [`Api::oai_chat_completions`] answers at once.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn stream_chat(&self, request: &ChatRequest) -> Result<EventStream, Error> {
        self.stream(&["oai", "api", "v1", "chat", "completions"], request).await
    }

    /// Answers a conversation of items in events, as it is sampled. [`Api::oai_responses`] answers at once.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn stream_response(&self, request: &ResponsesRequest) -> Result<EventStream, Error> {
        self.stream(&["oai", "api", "v1", "responses"], request).await
    }

    /// Continues texts or tokens in chunks, as they are sampled. [`Api::oai_completions`] answers at once.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn stream_completion(&self, request: &CompletionRequest) -> Result<EventStream, Error> {
        self.stream(&["oai", "api", "v1", "completions"], request).await
    }

    /// Answers a conversation of the Anthropic API in events, as it is sampled. [`Api::anthropic_messages`] answers at
    /// once.
    ///
    /// # Errors
    ///
    /// The server refuses the request or does not answer.
    pub async fn stream_messages(&self, request: &MessagesRequest) -> Result<EventStream, Error> {
        self.stream(&["anthropic", "api", "v1", "messages"], request).await
    }

    async fn stream(&self, path: &[&str], body: &impl Serialize) -> Result<EventStream, Error> {
        let mut body = serde_json::to_value(body).map_err(|error| Error::Value(format!("body: {error}")))?;
        body["stream"] = Value::Bool(true);
        let request = Request::new(reqwest::Method::POST, path).json(&body)?;
        EventStream::open(&self.session.api, request).await
    }

    /// Ends the session, if there is one; the service unloads its runs.
    ///
    /// # Errors
    ///
    /// The server does not answer; the session then ends by itself after some time.
    pub async fn close(&self) -> Result<(), Error> {
        self.session.finish(FinishKind::Success, None).await
    }

    /// Ends the session as [`close`](Self::close) does, for a program that did not succeed.
    ///
    /// # Errors
    ///
    /// The server does not answer; the session then ends by itself after some time.
    pub async fn close_with(&self, kind: FinishKind, detail: Option<&str>) -> Result<(), Error> {
        self.session.finish(kind, detail).await
    }
}

fn environment(name: &str) -> Option<String> {
    let variable = |prefix: &str| std::env::var(format!("{prefix}_{name}")).ok().filter(|value| !value.is_empty());
    variable("TRAINYARD").or_else(|| variable("TINKER"))
}
