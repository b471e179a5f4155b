//! Sessions and sampling sessions.

use std::sync::Arc;

use trainyard_protocol::{RequestId, SamplingSessionId, SessionId, TenantId};

use crate::claiming::end_if_ended;
use crate::core::Core;
use crate::queue::{creation_failed, session_ended};
use crate::signals::Signal;
use crate::store::db::Conn;
use crate::store::results::{End, Ended};
use crate::store::sessions::SessionRow;
use crate::store::{checkpoints, requests, results, runs, sampling, sessions};
use crate::writer::{Urgency, Write};
use crate::{
    Error, FinishReason, NewSamplingSession, NewSession, Page, SamplingSession, Scheduler, Session, SessionStatus,
    Timestamp,
};

impl Scheduler {
    /// Creates a session; the same one again for the same idempotency key.
    pub async fn create_session(&self, tenant: &TenantId, new: NewSession) -> Result<SessionId, Error> {
        if !new.user_metadata.is_object() {
            return Err(Error::Invalid("user_metadata must be an object".into()));
        }
        let id = SessionId::from_uuid(self.core.new_uuid());
        self.write(CreateSession { tenant: tenant.clone(), id, new }).await
    }

    /// Keeps a session alive, and takes an expired one up again. Submissions do so too.
    ///
    /// # Errors
    /// [`Error::Gone`] when it is finished, or expired so long ago that its results are gone.
    pub async fn heartbeat(&self, tenant: &TenantId, session: &SessionId) -> Result<(), Error> {
        match sessions::session_row(&mut self.core.reader().await?, tenant, session).await?.status {
            SessionStatus::Active => match self.core.due_touch(session) {
                Some(touch) => self.write(touch).await,
                None => Ok(()),
            },
            SessionStatus::Expired => {
                let revive = Revive { tenant: tenant.clone(), session: session.clone() };
                self.write(revive).await.map_err(|error| match error {
                    Error::SessionFinished { id } => Error::Gone { what: "session", id },
                    error => error,
                })
            }
            SessionStatus::Finished { .. } => Err(Error::Gone { what: "session", id: session.to_string() }),
        }
    }

    /// Ends a session. The first reason wins; repetitions are accepted. After a success, accepted work
    /// is still done; otherwise what waits is cancelled.
    pub async fn finish_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        reason: FinishReason,
        detail: Option<String>,
    ) -> Result<(), Error> {
        let end = EndSession {
            tenant: Some(tenant.clone()),
            session: session.clone(),
            status: SessionStatus::Finished { reason, detail },
            silent_since: None,
        };
        self.write(end).await?;
        Ok(())
    }

    /// Gives every session a fresh period: for a while no sign of life could be heard.
    pub async fn excuse_silence(&self) -> Result<(), Error> {
        self.write(ExcuseSilence).await
    }

    /// A session with its runs and sampling sessions.
    pub async fn session(&self, tenant: &TenantId, session: &SessionId) -> Result<Session, Error> {
        sessions::session(&mut self.core.reader().await?, tenant, session).await
    }

    /// Sessions, newest first.
    pub async fn list_sessions(&self, tenant: &TenantId, page: Page) -> Result<Vec<SessionId>, Error> {
        sessions::list_sessions(&mut self.core.reader().await?, tenant, page).await
    }

    /// Creates a sampling session, identified by (session, seq_id).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session or checkpoint.
    pub async fn create_sampling_session(
        &self,
        tenant: &TenantId,
        new: NewSamplingSession,
    ) -> Result<SamplingSessionId, Error> {
        self.write(CreateSamplingSession { tenant: tenant.clone(), new }).await
    }

    /// A sampling session.
    pub async fn sampling_session(
        &self,
        tenant: &TenantId,
        id: &SamplingSessionId,
    ) -> Result<Arc<SamplingSession>, Error> {
        if let Some(known) = self.core.samplers.get(tenant, id) {
            return Ok(known);
        }
        let found = Arc::new(sampling::sampling_session(&mut self.core.reader().await?, tenant, id).await?);
        self.core.samplers.put(tenant.clone(), Arc::clone(&found));
        Ok(found)
    }
}

struct CreateSession {
    tenant: TenantId,
    id: SessionId,
    new: NewSession,
}

impl Write for CreateSession {
    type Output = SessionId;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<SessionId, Error> {
        if let Some(key) = &self.new.idempotency_key
            && let Some(id) = sessions::session_by_idempotency_key(conn, &self.tenant, key).await?
        {
            return Ok(id);
        }
        sessions::insert_session(conn, &self.tenant, &self.id, &self.new, core.now()).await?;
        Ok(self.id.clone())
    }

    fn committed(&mut self, session: &SessionId, _core: &Arc<Core>) {
        if *session == self.id {
            tracing::info!(%session, tenant = %self.tenant, "a session was created");
        }
    }
}

/// Refuses a session that accepts nothing more. One whose signs of life stopped is taken up again by a new one, as
/// long as the results of its requests are kept.
pub(crate) async fn ensure_alive(conn: &mut Conn, core: &Core, session: &SessionRow) -> Result<(), Error> {
    let now = core.now();
    let over = || Error::SessionFinished { id: session.id.to_string() };
    match session.status {
        SessionStatus::Active => Ok(()),
        SessionStatus::Finished { .. } => Err(over()),
        SessionStatus::Expired => {
            if !sessions::revive_session(conn, &session.id, core.revivable_after(), now).await? {
                return Err(over());
            }
            tracing::info!(session = %session.id, "an expired session came back");
            Ok(())
        }
    }
}

/// A sign of life of an expired session.
struct Revive {
    tenant: TenantId,
    session: SessionId,
}

impl Write for Revive {
    type Output = ();

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.session).await?;
        ensure_alive(conn, core, &session).await
    }
}

struct ExcuseSilence;

impl Write for ExcuseSilence {
    type Output = ();

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        sessions::touch_all_sessions(conn, core.now()).await
    }
}

/// Notes a sign of life.
pub(crate) struct TouchSession {
    pub(crate) session: SessionId,
    pub(crate) at: Timestamp,
}

impl Write for TouchSession {
    type Output = ();
    const URGENCY: Urgency = Urgency::Record;

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        sessions::touch_session(conn, &self.session, self.at).await
    }
}

/// Ends a session.
pub(crate) struct EndSession {
    /// Who asks; `None` for the scheduler itself.
    pub(crate) tenant: Option<TenantId>,
    pub(crate) session: SessionId,
    pub(crate) status: SessionStatus,
    /// Only if there was no sign of life since.
    pub(crate) silent_since: Option<Timestamp>,
}

impl EndSession {
    /// Whether accepted work is still done.
    fn drains(&self) -> bool {
        matches!(self.status, SessionStatus::Finished { reason: FinishReason::Success, .. })
    }
}

/// What came of it.
pub(crate) struct SessionEnded {
    /// False when it had ended before.
    pub(crate) now: bool,
    /// What was cancelled here, because no worker has it.
    cancelled: Vec<(RequestId, Ended)>,
}

impl Write for EndSession {
    type Output = SessionEnded;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<SessionEnded, Error> {
        if let Some(tenant) = &self.tenant {
            sessions::session_row(conn, tenant, &self.session).await?;
        }
        let now = core.now();
        let mut ended = SessionEnded {
            now: sessions::end_session(conn, &self.session, &self.status, self.silent_since, now).await?,
            cancelled: Vec::new(),
        };
        if ended.now && !self.drains() {
            for request in requests::unowned_requests(conn, &self.session).await? {
                let end = results::end_request(conn, &request, &End::Cancelled, None, now).await?;
                if let Some(run) = end.as_ref().and_then(|end| end.creates.as_ref()) {
                    let cause = creation_failed(run, &session_ended());
                    runs::fail_run(conn, run, &cause, false).await?;
                }
                ended.cancelled.extend(end.map(|end| (request, end)));
            }
        }
        Ok(ended)
    }

    fn signals(&self, ended: &SessionEnded, signals: &mut Vec<Signal>) {
        if ended.now {
            signals.push(Signal::Session(self.session.clone()));
        }
        for (request, ended) in &ended.cancelled {
            ended.signals(request, signals);
        }
    }

    fn committed(&mut self, ended: &SessionEnded, core: &Arc<Core>) {
        if !ended.now {
            return;
        }
        if let SessionStatus::Finished { reason, .. } = &self.status {
            tracing::info!(session = %self.session, reason = reason.as_str(), "a session was finished");
        }
        core.with_queue(|queue| end_if_ended(queue, &self.session, &self.status));
        for (request, ended) in &ended.cancelled {
            core.announce(request, ended, None);
        }
    }
}

struct CreateSamplingSession {
    tenant: TenantId,
    new: NewSamplingSession,
}

impl Write for CreateSamplingSession {
    type Output = SamplingSessionId;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<SamplingSessionId, Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.new.session).await?;
        if let Some(id) = sampling::equal_sampling_session(conn, &self.tenant, &self.new).await? {
            return Ok(id);
        }
        ensure_alive(conn, core, &session).await?;
        let mut dir = None;
        if let Some(path) = &self.new.model_path {
            checkpoints::hold_checkpoint(conn, path).await?;
            let checkpoint = checkpoints::readable_checkpoint(conn, &self.tenant, path, core.now()).await?;
            if checkpoint.spec.base_model != self.new.base_model {
                return Err(Error::Invalid(format!(
                    "base_model {:?} is not that of {path}, which is {:?}",
                    self.new.base_model, checkpoint.spec.base_model
                )));
            }
            dir = Some(checkpoint.dir);
        }
        let save = match &self.new.snapshot {
            Some(key) => sampling::save_of_snapshot(conn, &self.new.session, key).await?,
            None => None,
        };
        let origin = sampling::Origin {
            checkpoint_dir: dir.as_deref(),
            save: save.as_ref().map(|(run, request)| (run, request)),
        };
        sampling::insert_sampling_session(conn, &self.tenant, &self.new, origin, core.now()).await
    }

    fn committed(&mut self, _id: &SamplingSessionId, core: &Arc<Core>) {
        core.touch(&self.new.session);
    }
}
