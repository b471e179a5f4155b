//! Sessions and sampling sessions.

use trainyard_protocol::{SamplingSessionId, SessionId, TenantId};

use crate::{Error, FinishReason, NewSamplingSession, NewSession, Page, SamplingSession, Scheduler, Session};

impl Scheduler {
    /// Creates a session; the same one again for the same idempotency key.
    pub async fn create_session(&self, _tenant: &TenantId, _new: NewSession) -> Result<SessionId, Error> {
        Err(Error::Store("x"))
    }

    /// Keeps a session alive.
    ///
    /// # Errors
    /// [`Error::Gone`] when it is finished or expired.
    pub async fn heartbeat(&self, _tenant: &TenantId, _session: &SessionId) -> Result<(), Error> {
        Err(Error::Store("x"))
    }

    /// Ends a session. The first reason wins; repetitions are accepted.
    pub async fn finish_session(
        &self,
        _tenant: &TenantId,
        _session: &SessionId,
        _reason: FinishReason,
        _detail: Option<String>,
    ) -> Result<(), Error> {
        Err(Error::Store("x"))
    }

    /// A session with its runs and sampling sessions.
    pub async fn session(&self, _tenant: &TenantId, _session: &SessionId) -> Result<Session, Error> {
        Err(Error::Store("x"))
    }

    /// Sessions, newest first.
    pub async fn list_sessions(&self, _tenant: &TenantId, _page: Page) -> Result<Vec<SessionId>, Error> {
        Err(Error::Store("x"))
    }

    /// Creates a sampling session, identified by (session, seq_id).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session or checkpoint.
    pub async fn create_sampling_session(
        &self,
        _tenant: &TenantId,
        _new: NewSamplingSession,
    ) -> Result<SamplingSessionId, Error> {
        Err(Error::Store("x"))
    }

    /// A sampling session.
    pub async fn sampling_session(
        &self,
        _tenant: &TenantId,
        _id: &SamplingSessionId,
    ) -> Result<SamplingSession, Error> {
        Err(Error::Store("x"))
    }
}
