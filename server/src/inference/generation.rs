//! One sample from its submission to its result. Dropping it before its end cancels the sample: its client hung up.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use trainyard_protocol::{Category, OpError, RequestId, Sample, SampleResult, SessionId, TenantId};
use trainyard_scheduler::{Encoding, Error, Poll, Scheduler, WorkerWait};

use super::model_name::Target;
use super::sampling_sessions::Place;
use super::submit::{NewSample, submit};
use crate::error::ApiError;
use crate::state::AppState;
use crate::wire::sampling::decode_result;

/// A request that its tenant's rate limit holds back for longer is refused.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// After how many seconds a client should repeat a request that this server can't finish.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A submitted sample.
pub(crate) struct Generation {
    state: AppState,
    sample: Pending,
    session: SessionId,
}

/// Cancels the sample when it is dropped, unless it has ended.
struct Pending {
    scheduler: Scheduler,
    tenant: TenantId,
    request: RequestId,
    ended: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (scheduler, tenant, request) = (self.scheduler.clone(), self.tenant.clone(), self.request.clone());
        let ended = self.ended;
        runtime.spawn(async move {
            let done = match ended {
                // The result was read: it need not be kept.
                true => scheduler.acknowledge(&tenant, std::slice::from_ref(&request)).await,
                false => scheduler.cancel(&tenant, &request).await,
            };
            if let Err(error) = done {
                tracing::debug!(%request, %error, ended, "sample could not be released");
            }
        });
    }
}

impl Generation {
    /// Submits a sample.
    ///
    /// # Errors
    /// When the model does not take it, a queue is full or a quota is used up.
    pub(crate) async fn start(
        state: &AppState,
        tenant: &TenantId,
        target: &Target,
        sample: &Sample,
        server_seed: bool,
    ) -> Result<Self, ApiError> {
        let sessions = &state.inference.sessions;
        let mut place = sessions.place(&state.scheduler, tenant, &target.source).await?;
        let submitted = match Self::submit(state, tenant, target, &place, sample, server_seed).await {
            // The session was ended by somebody, or expired while nobody asked for anything.
            Err(ApiError::Gone(_) | ApiError::NotFound { .. }) => {
                sessions.forget(tenant, &place.session).await;
                place = sessions.place(&state.scheduler, tenant, &target.source).await?;
                Self::submit(state, tenant, target, &place, sample, server_seed).await?
            }
            submitted => submitted?,
        };
        let sample = Pending {
            scheduler: state.scheduler.clone(),
            tenant: tenant.clone(),
            request: submitted,
            ended: false,
        };
        let generation = Self { state: state.clone(), sample, session: place.session };
        generation.check_pause().await?;
        Ok(generation)
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
        };
        Ok(submit(state, tenant, &target.base, new).await?.request_id)
    }

    /// The id of its request.
    pub(crate) fn id(&self) -> &RequestId {
        &self.sample.request
    }

    /// Refuses what a rate limit holds back for long: clients of these APIs expect to be told, not to wait.
    async fn check_pause(&self) -> Result<(), ApiError> {
        let Some(pause) = self.state.scheduler.pause(&self.sample.tenant, &self.sample.request).await? else {
            return Ok(());
        };
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

    /// Waits for the result.
    ///
    /// # Errors
    /// When the sample fails, or this process can't wait for it.
    pub(crate) async fn result(&mut self) -> Result<SampleResult, ApiError> {
        loop {
            match self.poll().await? {
                Poll::Pending => self.check_waiting().await?,
                Poll::Succeeded { encoding: Encoding::Protobuf, payload } => {
                    self.sample.ended = true;
                    return Ok(decode_result(&payload)?);
                }
                Poll::Succeeded { encoding: Encoding::Json, .. } => {
                    return Err(ApiError::Internal("the result of a sample is JSON".to_owned()));
                }
                Poll::Failed(error) => {
                    self.sample.ended = true;
                    return Err(of_failure(error));
                }
                Poll::Cancelled => return Err(ApiError::Gone("the request was cancelled".to_owned())),
            }
        }
    }

    async fn poll(&self) -> Result<Poll, ApiError> {
        let (scheduler, wait) = (&self.state.scheduler, self.state.limits.long_poll);
        let deadline = Instant::now() + wait;
        let poll = async {
            loop {
                match scheduler.poll(&self.sample.tenant, &self.sample.request, wait).await {
                    Err(Error::Unavailable(_)) if Instant::now() < deadline => {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                    polled => return polled,
                }
            }
        };
        tokio::select! {
            polled = timeout_at(deadline + wait, poll) => Ok(polled.unwrap_or(Ok(Poll::Pending))?),
            () = self.state.shutdown.requested() => Err(ApiError::Busy {
                message: "the server is shutting down; try again".to_owned(),
                retry_after_seconds: RETRY_AFTER_SECONDS,
            }),
        }
    }

    /// Keeps the session alive while the sample waits, and gives up when nobody executes it.
    async fn check_waiting(&self) -> Result<(), ApiError> {
        self.state.scheduler.heartbeat(&self.sample.tenant, &self.session).await?;
        match self.state.scheduler.worker_wait(&self.sample.tenant, &self.sample.request).await? {
            Some(WorkerWait::NotServed { model }) => {
                Err(ApiError::Unavailable(format!("no worker that serves {model} is running")))
            }
            _ => Ok(()),
        }
    }
}

fn of_failure(error: OpError) -> ApiError {
    match error.category {
        Category::User => ApiError::Invalid(error.message),
        Category::Server | Category::Unknown => ApiError::Internal(error.message),
    }
}
