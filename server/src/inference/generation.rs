//! One sample from its submission to its result. Dropping it before its end cancels the sample: its client hung up.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;
use trainyard_protocol::{Category, OpError, RequestId, Sample, SessionId, TenantId};
use trainyard_scheduler::{Actor, Origin, WorkerWait};

use super::model_name::Target;
use super::sampling_sessions::Place;
use super::submit::{NewSample, submit};
use crate::error::ApiError;
use crate::sample_stream::{SampleStream, StreamError, StreamEvent};
use crate::state::AppState;

/// Longest delay by a rate limit; a request that its tenant's limit holds back for longer is refused.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Interval of checking the rate limit until the request starts. A request is held back when it is about to start, a
/// moment after its submission.
const PAUSE_CHECKS: Duration = Duration::from_millis(300);
/// Seconds after which a client should repeat a request that this server can't finish.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A submitted sample, which is cancelled when this is dropped.
pub(crate) struct Generation {
    state: AppState,
    tenant: TenantId,
    request: RequestId,
    session: SessionId,
    stream: SampleStream,
    /// Time at which to check what a sample without any token waits for.
    look: Instant,
    /// Time at which to check whether a rate limit holds it back; `None` once it has started.
    pause_check: Option<Instant>,
}

impl Generation {
    /// Submits a sample. Dropping the future cancels it too, whether or not it was submitted already.
    ///
    /// # Errors
    /// Fails if the model does not accept the sample, a queue is full or a quota is used up.
    pub(crate) async fn start(
        state: &AppState,
        tenant: &TenantId,
        target: &Target,
        sample: &Sample,
        server_seed: bool,
    ) -> Result<Self, ApiError> {
        let begun = Self::begin(state.clone(), tenant.clone(), target.clone(), sample.clone(), server_seed);
        let (actor, origin) = (Actor::current(), Origin::current());
        let begun = actor.scope(async move {
            match origin {
                Some(origin) => origin.scope(begun).await,
                None => begun.await,
            }
        });
        // A separate task: if it were dropped between the submission and the stream, nobody would cancel the sample.
        let begun = tokio::spawn(begun.in_current_span()).await;
        let mut generation =
            begun.map_err(|error| ApiError::Internal(format!("failed to submit a sample: {error}")))??;
        generation.check_pause().await?;
        Ok(generation)
    }

    async fn begin(
        state: AppState,
        tenant: TenantId,
        target: Target,
        sample: Sample,
        server_seed: bool,
    ) -> Result<Self, ApiError> {
        let sessions = &state.inference.sessions;
        let mut place = sessions.place(&state.scheduler, &tenant, &target.source).await?;
        let request = match Self::submit(&state, &tenant, &target, &place, &sample, server_seed).await {
            // A client ended the session, or it expired while no request arrived.
            Err(ApiError::Gone(_) | ApiError::NotFound { .. }) => {
                sessions.forget(&tenant, &place.session).await;
                place = sessions.place(&state.scheduler, &tenant, &target.source).await?;
                Self::submit(&state, &tenant, &target, &place, &sample, server_seed).await?
            }
            submitted => submitted?,
        };
        // From here on, dropping the stream cancels the sample.
        let stream = SampleStream::open(&state.scheduler, tenant.clone(), request.clone()).await?;
        let (session, pause_check) = (place.session, Some(Instant::now() + PAUSE_CHECKS));
        let look = Instant::now() + state.limits.long_poll;
        Ok(Self { state, tenant, request, session, stream, look, pause_check })
    }

    async fn submit(
        state: &AppState,
        tenant: &TenantId,
        target: &Target,
        place: &Place,
        sample: &Sample,
        server_seed: bool,
    ) -> Result<RequestId, ApiError> {
        let new = NewSample {
            sampling_session: place.sampling_session.clone(),
            seq_id: place.seq_id,
            sample: sample.clone(),
            server_seed,
            recorded: false,
        };
        Ok(submit(state, tenant, &target.base, new).await?.request_id)
    }

    /// The id of its request.
    pub(crate) fn id(&self) -> &RequestId {
        &self.request
    }

    /// Refuses a request that a rate limit holds back for long: clients of these APIs expect a refusal, not a wait.
    async fn check_pause(&mut self) -> Result<(), ApiError> {
        let Some(pause) = self.state.scheduler.pause(&self.tenant, &self.request).await? else { return Ok(()) };
        let wait = self.state.clock.now().until(pause.until);
        if wait <= MAX_PAUSE {
            return Ok(());
        }
        let (name, limit) = (pause.quota.name(), pause.limit);
        Err(ApiError::Busy {
            message: format!("quota {name}: {limit} tokens per minute are used up; try again"),
            retry_after_seconds: u32::try_from(wait.as_secs().max(1)).unwrap_or(u32::MAX),
        })
    }

    /// Waits for the next event; `None` after the result. May be dropped and called again.
    ///
    /// # Errors
    /// Fails if the sample fails, or this process can't wait for it.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamEvent>, ApiError> {
        loop {
            let check = self.pause_check.map_or(self.look, |check| check.min(self.look));
            let event = tokio::select! {
                event = timeout_at(check, self.stream.next()) => event,
                () = self.state.shutdown.requested() => return Err(ApiError::Busy {
                    message: "the server is shutting down; try again".to_owned(),
                    retry_after_seconds: RETRY_AFTER_SECONDS,
                }),
            };
            match event {
                Ok(event) => {
                    self.pause_check = None;
                    return event.transpose().map_err(ApiError::from);
                }
                Err(_) if check < self.look => {
                    self.pause_check = Some(Instant::now() + PAUSE_CHECKS);
                    self.check_pause().await?;
                }
                Err(_) => self.check_waiting().await?,
            }
        }
    }

    /// Keeps the session alive while the sample waits, and fails when no worker can execute it.
    async fn check_waiting(&mut self) -> Result<(), ApiError> {
        self.look = Instant::now() + self.state.limits.long_poll;
        self.state.scheduler.heartbeat(&self.tenant, &self.session).await?;
        match self.state.scheduler.worker_wait(&self.tenant, &self.request).await? {
            Some(WorkerWait::NotServed { model }) => {
                Err(ApiError::Unavailable(format!("no worker that serves {model} is running")))
            }
            _ => Ok(()),
        }
    }

    /// Acknowledges that the result was read, so that the store need not keep it.
    pub(crate) fn acknowledge(&self) {
        let (scheduler, tenant, request) = (self.state.scheduler.clone(), self.tenant.clone(), self.request.clone());
        tokio::spawn(async move {
            if let Err(error) = scheduler.acknowledge(&tenant, std::slice::from_ref(&request)).await {
                tracing::debug!(%request, %error, "failed to acknowledge a result");
            }
        });
    }
}

impl From<StreamError> for ApiError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Failed(OpError { category: Category::User, message, .. }) => Self::Invalid(message),
            StreamError::Failed(error) => Self::Internal(error.message),
            StreamError::Scheduler(error) => error.into(),
            StreamError::Cancelled => Self::Gone(error.to_string()),
            error @ (StreamError::Result(_) | StreamError::NoSample | StreamError::Diverged) => {
                Self::Internal(error.to_string())
            }
        }
    }
}
