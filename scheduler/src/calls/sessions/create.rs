//! Creates and reads sessions.

use std::sync::Arc;

use trainyard_protocol::{SessionId, TenantId};

use crate::context::core::Core;
use crate::quotas::admission;
use crate::store::db::{Conn, RowScope};
use crate::store::sessions;
use crate::writer::write::Write;
use crate::{Actor, Error, NewSession, Page, Quota, Scheduler, Session};

impl Scheduler {
    /// Creates a session. Returns the existing one if the idempotency key was used before.
    ///
    /// # Errors
    /// [`Error::Quota`] if the tenant has as many sessions as its limit `max_sessions` allows.
    pub async fn create_session(&self, tenant: &TenantId, new: NewSession) -> Result<SessionId, Error> {
        if !new.user_metadata.is_object() {
            return Err(Error::Invalid("user_metadata must be an object".into()));
        }
        let id = SessionId::from_uuid(self.core.new_uuid());
        let created = self.write(CreateSession { tenant: tenant.clone(), id, new, user: Actor::current().user }).await;
        self.core.count_refusal(tenant, &created);
        created
    }

    /// Returns a session with its runs and sampling sessions.
    pub async fn session(&self, tenant: &TenantId, session: &SessionId) -> Result<Session, Error> {
        sessions::session(&mut self.core.reader_of(tenant).await?, tenant, session).await
    }

    /// Lists sessions, newest first, limited to a project if one is given.
    pub async fn list_sessions(
        &self,
        tenant: &TenantId,
        project_id: Option<&str>,
        page: Page,
    ) -> Result<Vec<SessionId>, Error> {
        sessions::list_sessions(&mut self.core.reader_of(tenant).await?, tenant, project_id, page).await
    }
}

struct CreateSession {
    tenant: TenantId,
    id: SessionId,
    new: NewSession,
    /// User whose key creates the session.
    user: Option<String>,
}

impl Write for CreateSession {
    type Output = SessionId;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::Sessions)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<SessionId, Error> {
        if let Some(key) = &self.new.idempotency_key
            && let Some(id) = sessions::session_by_idempotency_key(conn, &self.tenant, key).await?
        {
            return Ok(id);
        }
        admission::check_session(conn, core, &self.tenant).await?;
        sessions::insert_session(conn, &self.tenant, &self.id, &self.new, core.now()).await?;
        if let Some(user) = &self.user {
            sessions::set_session_user(conn, &self.id, user).await?;
        }
        Ok(self.id.clone())
    }

    fn committed(&mut self, session: &SessionId, _core: &Arc<Core>) {
        if *session == self.id {
            tracing::info!(%session, tenant = %self.tenant, "session created");
        }
    }
}
