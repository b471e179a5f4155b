//! The state that all handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::FromRef;
use bytes::Bytes;
use trainyard_http::shutdown::Shutdown;
use trainyard_protocol::{BaseModel, Prepare, TenantId};
use trainyard_scheduler::{Clock, Scheduler};
use trainyard_storage::Storage;
use trainyard_wire::images::{ImageLimits, ImageRules};

use crate::auth::Authenticator;
use crate::bodies::{Answers, BodyBudget, BodyLimits, DecodingBudget};
use crate::budgets;
use crate::disk::Disks;
use crate::error::ApiError;
use crate::inference::Inference;
use crate::metrics::{Metrics, ProcessMetrics};
use crate::models::Models;
use crate::pixel_rate::PixelRate;
use crate::random::Random;
use crate::signed_urls::Signer;
use crate::store_probe::StoreProbe;
use crate::traces::Traces;
use crate::upload_digests::UploadDigests;

/// Bounds on the requests of clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body, before and after decompression.
    pub max_body_bytes: usize,
    /// Memory and rate of bodies that are being received.
    pub bodies: BodyLimits,
    /// Bytes that all answers may take together, until clients have read them.
    pub answer_memory: usize,
    /// The longest time that a poll is held open. Clients give up after 45 s.
    pub long_poll: Duration,
    /// Samples that may be pending before further ones are rejected with 429.
    pub max_queued: u64,
    /// Limits on the images of a request.
    pub images: ImageLimits,
    /// The lifetime of a download URL.
    pub download_url_lifetime: Duration,
    /// The time limit of an upload, after which it is deleted.
    pub upload_lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: budgets::BODY_BYTES,
            bodies: BodyLimits::default(),
            answer_memory: budgets::ANSWER_MEMORY,
            long_poll: budgets::LONG_POLL,
            max_queued: budgets::QUEUED_SAMPLES,
            images: ImageLimits::default(),
            download_url_lifetime: Duration::from_secs(3_600),
            upload_lifetime: budgets::UPLOAD_LIFETIME,
        }
    }
}

/// The parts that [`AppState::new`] joins.
pub struct Setup {
    /// The durable request log.
    pub scheduler: Scheduler,
    /// The base models that are served.
    pub models: Models,
    /// Checks the examples of requests that this process executes; `None` if it has no engine.
    pub preparer: Option<Arc<dyn Prepare>>,
    /// Authenticates the callers of the API.
    pub auth: Authenticator,
    /// Whether callers need keys.
    pub keyed: bool,
    /// Bounds on the requests of clients.
    pub limits: Limits,
    /// The listening side of [`Shutdown::channel`].
    pub shutdown: Shutdown,
    /// The storage of checkpoints.
    pub storage: Storage,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Random bits for seeds.
    pub random: Random,
    /// The URL at which clients reach the server; taken from each request's headers when `None`.
    pub public_url: Option<String>,
    /// Whether clients use HTTPS.
    pub https: bool,
    /// Further metrics of the process.
    pub process_metrics: ProcessMetrics,
    /// Records spans of calls and of the requests that they submit.
    pub traces: Traces,
    /// Signs and checks download URLs.
    pub signer: Signer,
    /// The disks that requests take space on.
    pub disks: Disks,
    /// Whether the console is served.
    pub console: bool,
    /// The OpenAPI document as JSON.
    pub openapi: Bytes,
}

/// The state that all handlers share. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The durable request log.
    pub scheduler: Scheduler,
    /// The base models that are served.
    pub models: Models,
    /// Checks the examples of requests that this process executes; `None` if it has no engine.
    pub preparer: Option<Arc<dyn Prepare>>,
    /// Authenticates the callers of the API.
    pub auth: Arc<Authenticator>,
    /// Whether callers needed keys at the start.
    pub keyed: bool,
    /// Bounds on the requests of clients.
    pub limits: Arc<Limits>,
    /// Ends long polls when the server shuts down.
    pub shutdown: Shutdown,
    /// The storage of checkpoints.
    pub storage: Storage,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Random bits for seeds.
    pub random: Random,
    /// Signs and checks download URLs.
    pub signer: Arc<Signer>,
    /// Whether the console is served.
    pub console: bool,
    /// The URL at which clients reach the server; taken from each request's headers when `None`.
    pub public_url: Option<Arc<str>>,
    /// Whether clients use HTTPS.
    pub https: bool,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// The disks that requests take space on.
    pub disks: Disks,
    /// Records spans of calls and of the requests that they submit.
    pub traces: Traces,
    /// Tokenizers, chat templates and sampling sessions of the compatible APIs.
    pub inference: Inference,
    pub(crate) openapi: Bytes,
    /// Memory budget of bodies that are being received.
    pub(crate) receiving: BodyBudget,
    /// Answers that are being written or read.
    pub(crate) answers: Answers,
    /// Memory budget of bodies that are being decoded.
    pub(crate) decoding: DecodingBudget,
    /// Pixels of images that tenants send.
    pub(crate) pixel_rate: Arc<PixelRate>,
    /// Digests of complete uploads.
    pub(crate) upload_digests: Arc<UploadDigests>,
    /// The last probe of the store by health checks.
    pub(crate) store_probe: Arc<StoreProbe>,
    ready: Arc<AtomicBool>,
}

impl AppState {
    /// Joins the parts. The server is not ready until [`AppState::set_ready`] is called.
    pub fn new(setup: Setup) -> Self {
        Self {
            metrics: Arc::new(Metrics::new(&setup.scheduler, &setup.process_metrics, &setup.disks)),
            disks: setup.disks,
            console: setup.console,
            openapi: setup.openapi,
            scheduler: setup.scheduler,
            models: setup.models,
            preparer: setup.preparer,
            receiving: BodyBudget::new(setup.limits.bodies.clone(), setup.keyed),
            answers: Answers::new(setup.limits.answer_memory, setup.limits.bodies.wait, setup.keyed),
            auth: Arc::new(setup.auth),
            keyed: setup.keyed,
            pixel_rate: Arc::default(),
            limits: Arc::new(setup.limits),
            shutdown: setup.shutdown,
            storage: setup.storage,
            clock: setup.clock,
            random: setup.random,
            signer: Arc::new(setup.signer),
            public_url: setup.public_url.map(|url| url.trim_end_matches('/').into()),
            https: setup.https,
            traces: setup.traces,
            inference: Inference::default(),
            decoding: DecodingBudget::default(),
            upload_digests: Arc::default(),
            store_probe: Arc::default(),
            ready: Arc::default(),
        }
    }

    /// Counts the pixels of a request's images against the tenant's rate limit.
    ///
    /// # Errors
    /// Fails with 429 while the limit is used up.
    pub(crate) fn take_pixels(&self, tenant: &TenantId, pixels: u64) -> Result<(), ApiError> {
        let limit = self.scheduler.policy(tenant).pixels_per_minute;
        self.pixel_rate.take(tenant, limit, pixels, self.clock.now())
    }

    /// Announces that the models are loaded; shared by all clones.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Returns whether the models are loaded.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Finds a served base model.
    pub fn model(&self, name: &str) -> Option<BaseModel> {
        self.models.list().iter().find(|model| model.name == name).cloned()
    }

    /// What a base model accepts as images; nothing if it is not served.
    pub(crate) fn image_rules(&self, base_model: &str) -> ImageRules {
        match self.models.list().iter().find(|model| model.name == base_model) {
            Some(model) => ImageRules::new(model, self.limits.images),
            None => ImageRules::text_only(base_model),
        }
    }

    /// Returns the name of the base model in a client's model name, which may have the context length of its training
    /// appended: `Org/Model:peft:N`.
    pub fn base_name(&self, name: String) -> String {
        match without_context_length(&name) {
            Some(base) if self.model(&name).is_none() => base.to_owned(),
            _ => name,
        }
    }

    /// Finds the base model that a request names, or returns an error that lists the served ones.
    pub fn require_model(&self, name: &str) -> Result<BaseModel, ApiError> {
        self.model(name).ok_or_else(|| {
            let models = self.models.list();
            let served: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
            ApiError::invalid(format!("base_model: {name:?} is not served here; served: {}", served.join(", ")))
        })
    }
}

/// A base model's name without the context length that follows it, if one does.
fn without_context_length(name: &str) -> Option<&str> {
    let (base, length) = name.rsplit_once(":peft:")?;
    length.parse::<u64>().is_ok().then_some(base)
}

impl FromRef<AppState> for Arc<Metrics> {
    fn from_ref(state: &AppState) -> Self {
        state.metrics.clone()
    }
}

impl FromRef<AppState> for Traces {
    fn from_ref(state: &AppState) -> Self {
        state.traces.clone()
    }
}

impl FromRef<AppState> for Arc<Authenticator> {
    fn from_ref(state: &AppState) -> Self {
        state.auth.clone()
    }
}
