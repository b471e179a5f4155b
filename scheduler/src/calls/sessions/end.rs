//! The write that ends a session: finished by its client, or expired.

use std::sync::Arc;

use trainyard_protocol::{SessionId, TenantId};

use crate::context::core::Core;
use crate::lease::apply_session_end;
use crate::processes::signals::Signal;
use crate::store::db::{Conn, RowScope};
use crate::store::sessions;
use crate::writer::write::Write;
use crate::{Error, SessionStatus, Timestamp};

/// A write that ends a session. Unless it ended with success, this is the mark by which its requests are cancelled.
pub(crate) struct EndSession {
    /// Tenant that asks; `None` for the scheduler itself.
    pub(crate) tenant: Option<TenantId>,
    pub(crate) session: SessionId,
    pub(crate) status: SessionStatus,
    /// Time since which there must have been no heartbeat for the session to end.
    pub(crate) without_heartbeat_since: Option<Timestamp>,
}

impl Write for EndSession {
    /// Whether this write ended the session; false if it had ended before.
    type Output = bool;

    fn scope(&self) -> RowScope {
        self.tenant.as_ref().map_or(RowScope::System, RowScope::of)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        if let Some(tenant) = &self.tenant {
            sessions::session_row(conn, tenant, &self.session).await?;
        }
        sessions::end_session(conn, &self.session, &self.status, self.without_heartbeat_since, core.now()).await
    }

    fn signals(&self, ended: &bool, signals: &mut Vec<Signal>) {
        if *ended {
            signals.push(Signal::Session(self.session.clone()));
        }
    }

    fn committed(&mut self, ended: &bool, core: &Arc<Core>) {
        if !*ended {
            return;
        }
        if let SessionStatus::Finished { reason, .. } = &self.status {
            tracing::info!(session = %self.session, reason = reason.as_str(), "session finished");
        }
        core.with_queue(|queue| apply_session_end(queue, &self.session, &self.status));
        if self.status.cancels() {
            core.cancel_requests_of(&self.session, Vec::new());
        }
    }
}
