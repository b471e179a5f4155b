//! Copies of checkpoints: new paths for the same files.

use std::sync::Arc;

use trainyard_protocol::{RunId, SessionId, TenantId, TinkerPath};

use crate::calls::sessions::ensure_alive;
use crate::context::core::Core;
use crate::quotas::admission;
use crate::store::checkpoints;
use crate::store::db::{Conn, RowScope};
use crate::store::runs::{self, ImportRun};
use crate::store::{failed, sessions};
use crate::writer::write::Write;
use crate::{
    Checkpoint, Error, FinishReason, NewCheckpoint, NewSession, Quota, Run, Scheduler, SessionStatus, Timestamp,
};

/// A checkpoint to copy.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCopy {
    /// Path of the checkpoint.
    pub source: TinkerPath,
    /// Tenant that may read the checkpoint: the one that copies, or one that granted it access.
    pub reader: TenantId,
    /// Run that receives the copy.
    pub destination: CopyDestination,
    /// Seconds until the copy expires, independent of its source; never if `None`.
    pub expires_in: Option<i64>,
}

/// Run that receives a copy. The run can't be trained.
#[derive(Clone, Debug, PartialEq)]
pub enum CopyDestination {
    /// The first run of a new session, which ends at once. Its idempotency key identifies the copy.
    NewSession(NewSession),
    /// A new run of a session that accepts requests. Session and number identify the copy.
    Run {
        /// Session of the new run.
        session: SessionId,
        /// Client's number of the run, unique within the session.
        model_seq_id: i64,
    },
}

impl Scheduler {
    /// Copies a checkpoint: a new run gets a checkpoint of the same kind, name and metadata with the same files. The
    /// files stay as long as one of the two needs them. A repetition returns the same copy. The copy counts in full
    /// against the storage quota.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the reader can't read the source, or for an unknown session; [`Error::Mismatch`] if the
    /// destination was used for something else; [`Error::Invalid`] beyond the storage quota.
    pub async fn copy_checkpoint(&self, tenant: &TenantId, copy: NewCopy) -> Result<TinkerPath, Error> {
        let session = match &copy.destination {
            CopyDestination::NewSession(_) => SessionId::from_uuid(self.core.new_uuid()),
            CopyDestination::Run { session, .. } => session.clone(),
        };
        let copied = self.write(CopyCheckpoint { tenant: tenant.clone(), session, copy }).await;
        self.core.count_refusal(tenant, &copied);
        copied.map_err(|error| match error {
            // Waiting does not help against this quota, and clients repeat a 429 for minutes.
            Error::Quota(refusal) => Error::Invalid(refusal.to_string()),
            error => error,
        })
    }
}

struct CopyCheckpoint {
    tenant: TenantId,
    /// Session of the run that receives the copy.
    session: SessionId,
    copy: NewCopy,
}

impl CopyCheckpoint {
    /// Returns the path of the copy in a run.
    fn path(&self, run: RunId) -> TinkerPath {
        TinkerPath { run, ..self.copy.source.clone() }
    }

    /// Returns the copy that was made before, if there is one.
    async fn existing(&self, conn: &mut Conn, run: RunId) -> Result<Option<TinkerPath>, Error> {
        let Some(source) = runs::import_source(conn, &self.tenant, &run).await? else { return Ok(None) };
        if source != self.copy.source.to_string() {
            return Err(Error::Mismatch(format!("training run {run} was created before, as a copy of {source}")));
        }
        Ok(Some(self.path(run)))
    }

    /// Creates the run that receives the copy, and its session if it is new.
    async fn insert_run(
        &self,
        conn: &mut Conn,
        run: &RunId,
        source: &Checkpoint,
        original: &Run,
        now: Timestamp,
    ) -> Result<(), Error> {
        let model_seq_id = match &self.copy.destination {
            CopyDestination::NewSession(new) => {
                sessions::insert_session(conn, &self.tenant, &self.session, new, now).await?;
                let done = SessionStatus::Finished { reason: FinishReason::Success, detail: None };
                sessions::end_session(conn, &self.session, &done, None, now).await?;
                0
            }
            CopyDestination::Run { model_seq_id, .. } => *model_seq_id,
        };
        let import = ImportRun {
            id: run,
            session: &self.session,
            model_seq_id,
            spec: &source.spec,
            // Programs look in the metadata for settings of the run, such as its renderer.
            user_metadata: &original.user_metadata,
            source: &source.path.to_string(),
        };
        runs::insert_import(conn, &self.tenant, &import, now).await
    }
}

impl Write for CopyCheckpoint {
    type Output = TinkerPath;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::StorageBytes)
    }

    fn sessions(&self) -> Vec<SessionId> {
        vec![self.session.clone()]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<TinkerPath, Error> {
        let now = core.now();
        let run = match &self.copy.destination {
            CopyDestination::NewSession(new) => {
                let known = match &new.idempotency_key {
                    Some(key) => sessions::session_by_idempotency_key(conn, &self.tenant, key).await?,
                    None => None,
                };
                RunId::of_session(known.as_ref().unwrap_or(&self.session), 0)
            }
            CopyDestination::Run { session, model_seq_id } => RunId::of_session(session, *model_seq_id),
        };
        if let Some(path) = self.existing(conn, run.clone()).await? {
            return Ok(path);
        }
        if let CopyDestination::Run { session, .. } = &self.copy.destination {
            let row = sessions::session_row(conn, &self.tenant, session).await?;
            ensure_alive(conn, core, &row).await?;
        }
        let reader = &self.copy.reader;
        checkpoints::hold_checkpoint(conn, &self.copy.source, &RowScope::of(reader)).await?;
        let source = checkpoints::readable_checkpoint(conn, reader, &self.copy.source, now).await?;
        let original = runs::readable_run(conn, reader, &source.path.run, now).await?;
        conn.enter(&self.scope()).await.map_err(failed("copy a checkpoint"))?;
        self.insert_run(conn, &run, &source, &original, now).await?;
        let copy = NewCheckpoint {
            path: self.path(run),
            overwrite: false,
            dir: source.dir,
            size_bytes: source.size_bytes,
            spec: source.spec,
            expires_in: self.copy.expires_in,
            user_metadata: source.user_metadata,
        };
        checkpoints::upsert_checkpoint(conn, &self.tenant, &copy, now).await?;
        admission::check_checkpoint(conn, core, &self.tenant, copy.size_bytes).await?;
        Ok(copy.path)
    }

    fn committed(&mut self, path: &TinkerPath, core: &Arc<Core>) {
        tracing::info!(source = %self.copy.source, copy = %path, tenant = %self.tenant, "checkpoint copied");
        if matches!(self.copy.destination, CopyDestination::Run { .. }) {
            core.touch(&self.session);
        }
    }
}
