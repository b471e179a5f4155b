//! Creates and reads sampling sessions.

use std::sync::Arc;

use trainyard_protocol::{SamplingSessionId, SessionId, TenantId};

use super::heartbeat::ensure_alive;
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::room::{self, Bounded};
use crate::store::{checkpoints, numerics, sampling, sessions};
use crate::writer::write::Write;
use crate::{Error, NewSamplingSession, SamplingSession, Scheduler};

impl Scheduler {
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

    /// Returns a sampling session of the tenant.
    pub async fn sampling_session(
        &self,
        tenant: &TenantId,
        id: &SamplingSessionId,
    ) -> Result<Arc<SamplingSession>, Error> {
        if let Some(known) = self.core.sampling_sessions.get(tenant, id) {
            return Ok(known);
        }
        let found = Arc::new(sampling::sampling_session(&mut self.core.reader_of(tenant).await?, tenant, id).await?);
        self.core.sampling_sessions.put(tenant.clone(), Arc::clone(&found));
        Ok(found)
    }

    /// Returns the next number for a clone of a sampling session's client, from 1: the samples of clone `n` count from
    /// `n * 10^9`. Each number is given only once.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown sampling session, [`Error::SessionFinished`] if its session has ended.
    pub async fn join_sampling_session(&self, tenant: &TenantId, id: &SamplingSessionId) -> Result<i64, Error> {
        let session = self.sampling_session(tenant, id).await?.session.clone();
        self.write(JoinSamplingSession { tenant: tenant.clone(), id: id.clone(), session }).await
    }
}

struct JoinSamplingSession {
    tenant: TenantId,
    id: SamplingSessionId,
    session: SessionId,
}

impl Write for JoinSamplingSession {
    type Output = i64;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<i64, Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.session).await?;
        ensure_alive(conn, core, &session).await?;
        sampling::number_clone(conn, &self.tenant, &self.id).await
    }

    fn committed(&mut self, _number: &i64, core: &Arc<Core>) {
        core.touch(&self.session);
    }
}

struct CreateSamplingSession {
    tenant: TenantId,
    new: NewSamplingSession,
}

impl Write for CreateSamplingSession {
    type Output = SamplingSessionId;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<SamplingSessionId, Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.new.session).await?;
        if let Some(id) = sampling::equal_sampling_session(conn, &self.tenant, &self.new).await? {
            return Ok(id);
        }
        ensure_alive(conn, core, &session).await?;
        room::ensure_room(conn, Bounded::SamplingSessions, self.new.session.as_str()).await?;
        let mut dir = None;
        if let Some(path) = &self.new.model_path {
            checkpoints::hold_checkpoint(conn, path, &self.scope()).await?;
            let checkpoint = checkpoints::readable_checkpoint(conn, &self.tenant, path, core.now()).await?;
            let (wanted, found) = (&self.new.base_model, &checkpoint.spec.base_model);
            if wanted != found && !numerics::are_same_weights(conn, wanted, found).await? {
                return Err(Error::Invalid(format!(
                    "base_model: expected {found:?}, the base model of {path}, found {wanted:?}"
                )));
            }
            dir = Some(checkpoint.dir);
        }
        let save = match &self.new.snapshot {
            Some(key) => sampling::save_of_snapshot(conn, &self.new.session, key).await?,
            None => None,
        };
        let origin = sampling::SamplingOrigin {
            checkpoint_dir: dir.as_deref(),
            save: save.as_ref().map(|(run, request)| (run, request)),
        };
        sampling::insert_sampling_session(conn, &self.tenant, &self.new, origin, core.now()).await
    }

    fn committed(&mut self, _id: &SamplingSessionId, core: &Arc<Core>) {
        core.touch(&self.new.session);
    }
}
