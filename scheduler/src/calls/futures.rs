//! Calls that wait for results.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use trainyard_protocol::{RequestId, SamplingSessionId, SessionId, TenantId};

use crate::budgets::ACKNOWLEDGED_TOGETHER;
use crate::context::core::Core;
use crate::processes::signals::Signal;
use crate::quotas::TokenBucket;
use crate::store::db::{Conn, RowScope};
use crate::store::results::{EndedRequest, RequestEnd, StoredResult};
use crate::store::{quotas, requests, results, sampling};
use crate::writer::write::Write;
use crate::{Completions, Error, Pause, Poll, Quota, RequestKind, Scheduler};

impl Scheduler {
    /// Returns the result of a request. Waits up to `wait` for it to finish. Can be repeated.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown request, [`Error::Gone`] if its result was dropped.
    pub async fn poll(&self, tenant: &TenantId, request: &RequestId, wait: Duration) -> Result<Poll, Error> {
        let deadline = Instant::now() + wait;
        loop {
            let mut waiter = self.core.waiters.await_request(request);
            let now = self.look(tenant, request).await?;
            // The waiter may wake without a change, for example after missed notifications.
            if now != Poll::Pending || timeout_at(deadline, waiter.woken()).await.is_err() {
                return Ok(now);
            }
        }
    }

    /// Returns the present state of a request's result.
    pub(crate) async fn look(&self, tenant: &TenantId, request: &RequestId) -> Result<Poll, Error> {
        if let Some(poll) = self.core.results.get(tenant, request) {
            return Ok(poll);
        }
        if !self.core.is_shared() && self.core.queue.read().has_open(tenant, request) {
            return Ok(Poll::Pending);
        }
        // Return the connection to the pool before the file is read.
        let stored = results::request_result(&mut self.core.reader_of(tenant).await?, tenant, request).await?;
        match stored {
            StoredResult::Pending => Ok(Poll::Pending),
            StoredResult::Failed(error) => Ok(Poll::Failed(error)),
            StoredResult::Cancelled => Ok(Poll::Cancelled),
            StoredResult::Dropped => Err(Error::Gone { what: "request", id: request.to_string() }),
            StoredResult::Succeeded { encoding, result } => {
                Ok(Poll::Succeeded { encoding, payload: self.core.blobs.get(result).await? })
            }
        }
    }

    /// Returns the pause imposed by the tenant's rate limit, if it holds back a pending request that would be next.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn pause(&self, tenant: &TenantId, request: &RequestId) -> Result<Option<Pause>, Error> {
        let now = self.core.now();
        let Some(rate) = self.core.grants.policy(tenant).tokens_per_minute else { return Ok(None) };
        let here = self.core.queue.read().pause(tenant, request, now);
        if here.is_some() || !self.core.is_shared() {
            return Ok(here);
        }
        // Another process may hold the request back; the level of the token bucket in the store shows whether it does.
        let conn = &mut self.core.reader_of(tenant).await?;
        let Some(tokens) = quotas::queued_request(conn, tenant, request).await? else { return Ok(None) };
        let Some(level) = quotas::rate_limit_level(conn, tenant).await? else { return Ok(None) };
        let until = TokenBucket::restored(rate, level).ready_at(tokens, now);
        Ok((until > now).then_some(Pause { quota: Quota::TokensPerMinute, limit: rate.get(), until }))
    }

    /// Returns the samples of one clone (`seq_id div 10^9`) that finished after the cursor `after`. Waits up to `wait`
    /// for the first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown sampling session.
    pub async fn completions(
        &self,
        tenant: &TenantId,
        sampling_session: &SamplingSessionId,
        clone_id: i64,
        after: i64,
        wait: Duration,
    ) -> Result<Completions, Error> {
        let deadline = Instant::now() + wait;
        sampling::sampling_session(&mut self.core.reader_of(tenant).await?, tenant, sampling_session).await?;
        loop {
            let mut waiter = self.core.waiters.await_samples((sampling_session.clone(), clone_id));
            let now = self.events_after(tenant, sampling_session, clone_id, after).await?;
            if !now.items.is_empty() || timeout_at(deadline, waiter.woken()).await.is_err() {
                return Ok(now);
            }
        }
    }

    async fn events_after(
        &self,
        tenant: &TenantId,
        sampling_session: &SamplingSessionId,
        clone_id: i64,
        after: i64,
    ) -> Result<Completions, Error> {
        let mut conn = self.core.reader_of(tenant).await?;
        results::completions_after(&mut conn, tenant, sampling_session, clone_id, after).await
    }

    /// Records that the client has received these results, which are dropped some minutes later. Unknown ids are
    /// ignored.
    pub async fn acknowledge(&self, tenant: &TenantId, requests: &[RequestId]) -> Result<(), Error> {
        // Other commits come between.
        for some in requests.chunks(ACKNOWLEDGED_TOGETHER) {
            self.write(Acknowledge { tenant: tenant.clone(), requests: some.to_vec() }).await?;
        }
        Ok(())
    }

    /// Cancels a sample. Repetitions are accepted, and a finished sample stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown request, [`Error::Invalid`] if the request is not a sample.
    pub async fn cancel(&self, tenant: &TenantId, request: &RequestId) -> Result<(), Error> {
        let sessions = self.core.sessions_of_samples(std::slice::from_ref(request), &RowScope::of(tenant)).await?;
        let cancel = CancelSample { tenant: tenant.clone(), request: request.clone(), sessions };
        self.write(cancel).await?;
        Ok(())
    }
}

impl Core {
    /// Returns the sessions of samples in a scope, which other processes may end too.
    pub(crate) async fn sessions_of_samples(
        &self,
        requests: &[RequestId],
        scope: &RowScope,
    ) -> Result<Vec<SessionId>, Error> {
        if !self.is_shared() || requests.is_empty() {
            return Ok(Vec::new());
        }
        requests::sessions_of_samples(&mut self.reader_in(scope).await?, requests).await
    }
}

struct Acknowledge {
    tenant: TenantId,
    requests: Vec<RequestId>,
}

impl Write for Acknowledge {
    type Output = ();

    const UNDO: bool = false;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        results::acknowledge_requests(conn, &self.tenant, &self.requests, core.now()).await
    }
}

/// Cancels a sample. Returns the request that ended, unless it had ended before.
struct CancelSample {
    tenant: TenantId,
    request: RequestId,
    sessions: Vec<SessionId>,
}

impl Write for CancelSample {
    type Output = Option<EndedRequest>;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.sessions.clone()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Option<EndedRequest>, Error> {
        let request = &self.request;
        if requests::request_kind(conn, &self.tenant, request).await? != RequestKind::Sample {
            return Err(Error::Invalid(format!("request {request} is not a sample and can't be cancelled")));
        }
        results::end_request(conn, request, &RequestEnd::Cancelled, None, core.now()).await
    }

    fn signals(&self, ended: &Option<EndedRequest>, signals: &mut Vec<Signal>) {
        if let Some(ended) = ended {
            ended.signals(&self.request, signals);
            signals.push(Signal::Cancel(self.request.clone()));
        }
    }

    fn committed(&mut self, ended: &Option<EndedRequest>, core: &Arc<Core>) {
        if let Some(ended) = ended {
            core.with_queue(|queue| queue.drop_sample(&self.request));
            core.announce_end(&self.request, ended, None);
        }
    }
}
