//! Heartbeats of sessions. Requests of any kind count and keep a session from expiring.

use trainyard_protocol::{SessionId, TenantId};

use crate::context::core::{Core, Urgency};
use crate::store::db::{Conn, RowScope};
use crate::store::sessions::{self, SessionRow};
use crate::writer::write::Write;
use crate::{Error, Scheduler, SessionStatus, Timestamp};

impl Scheduler {
    /// Records a heartbeat of a session, which revives an expired one. Submissions count as heartbeats too.
    ///
    /// # Errors
    /// [`Error::Gone`] if the session is finished, or expired so long ago that its results were dropped.
    pub async fn heartbeat(&self, tenant: &TenantId, session: &SessionId) -> Result<(), Error> {
        // The connection goes back to the pool before the write, which may take seconds.
        let status = sessions::session_row(&mut self.core.reader_of(tenant).await?, tenant, session).await?.status;
        match status {
            SessionStatus::Active => match self.core.due_heartbeat(session) {
                Some(heartbeat) => self.write(heartbeat).await,
                None => Ok(()),
            },
            SessionStatus::Expired => {
                let revive = ReviveSession { tenant: tenant.clone(), session: session.clone() };
                self.write(revive).await.map_err(|error| match error {
                    Error::SessionFinished { id } => Error::Gone { what: "session", id },
                    error => error,
                })
            }
            SessionStatus::Finished { .. } => Err(Error::Gone { what: "session", id: session.to_string() }),
        }
    }

    /// Extends the heartbeats of all sessions to now, after a time in which none could be received.
    pub async fn extend_heartbeats(&self) -> Result<(), Error> {
        // After a sleep of the machine, the last reading is of the time before.
        self.core.read_clock().await?;
        self.write(ExtendHeartbeats).await
    }
}

impl Core {
    /// Records a heartbeat for a request that arrived in a session, unless the last one is recent.
    pub(crate) fn touch(&self, session: &SessionId) {
        self.sessions.count_activity();
        if let Some(heartbeat) = self.due_heartbeat(session) {
            self.record(heartbeat);
        }
    }

    /// Returns the heartbeat to record, unless the last one is recent.
    fn due_heartbeat(&self, session: &SessionId) -> Option<RecordHeartbeat> {
        let now = self.now();
        let due = self.sessions.is_due(session, now);
        due.then(|| RecordHeartbeat { session: session.clone(), at: now })
    }
}

/// A write that records a heartbeat.
struct RecordHeartbeat {
    session: SessionId,
    at: Timestamp,
}

impl Write for RecordHeartbeat {
    type Output = ();
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        sessions::touch_session(conn, &self.session, self.at).await
    }
}

struct ExtendHeartbeats;

impl Write for ExtendHeartbeats {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        sessions::extend_heartbeats(conn, core.now()).await
    }
}

/// Refuses a session that no longer accepts requests. An expired session is revived if its results are still stored.
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
            tracing::info!(session = %session.id, "expired session revived");
            Ok(())
        }
    }
}

/// A write that records the heartbeat of an expired session.
struct ReviveSession {
    tenant: TenantId,
    session: SessionId,
}

impl Write for ReviveSession {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.session).await?;
        ensure_alive(conn, core, &session).await
    }
}
