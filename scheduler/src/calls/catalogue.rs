//! Calls about runs and checkpoints.

use std::path::PathBuf;

use serde_json::{Map, Value};
use trainyard_protocol::limits::{MAX_TTL_SECONDS, MIN_TTL_SECONDS};
use trainyard_protocol::{CheckpointKind, RequestId, RunId, SessionId, TenantId, TinkerPath};

use crate::context::core::Core;
use crate::store::checkpoints::{self, Listed};
use crate::store::db::{Conn, RowScope};
use crate::store::{failed, folders, gc, run_listing, runs, usage};
use crate::writer::audit::Audit;
use crate::writer::write::Write;
use crate::{AccessScope, AuditCategory, Checkpoint, Error, NewAuditEntry, Page, Run, RunFilter, Scheduler, Timestamp};

impl Scheduler {
    /// Returns a page of the runs that match a filter, newest first, and their number on all pages.
    pub async fn runs(&self, tenant: &TenantId, filter: &RunFilter, page: Page) -> Result<(Vec<Run>, u64), Error> {
        let now = self.core.now();
        run_listing::list_runs(&mut self.core.reader_of(tenant).await?, tenant, filter, page, now).await
    }

    /// Returns a run of the tenant.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn run(&self, tenant: &TenantId, run: &RunId) -> Result<Run, Error> {
        runs::run(&mut self.core.reader_of(tenant).await?, tenant, run).await
    }

    /// Returns a run that the tenant may read: its own, or another tenant's run with a public checkpoint.
    ///
    /// # Errors
    /// [`Error::NotFound`] for any other run.
    pub async fn readable_run(&self, tenant: &TenantId, run: &RunId) -> Result<Run, Error> {
        let now = self.core.now();
        runs::readable_run(&mut self.core.reader_of(tenant).await?, tenant, run, now).await
    }

    /// Returns a page of checkpoints, newest first, and their number on all pages.
    pub async fn checkpoints(
        &self,
        tenant: &TenantId,
        scope: AccessScope,
        page: Page,
    ) -> Result<(Vec<Checkpoint>, u64), Error> {
        let now = self.core.now();
        checkpoints::list_checkpoints(&mut self.core.reader_of(tenant).await?, tenant, Listed::In(scope), page, now)
            .await
    }

    /// Returns a page of the checkpoints of the tenant's sessions in a project, as [`Self::checkpoints`] does.
    pub async fn project_checkpoints(
        &self,
        tenant: &TenantId,
        project: &str,
        page: Page,
    ) -> Result<(Vec<Checkpoint>, u64), Error> {
        let now = self.core.now();
        checkpoints::list_checkpoints(
            &mut self.core.reader_of(tenant).await?,
            tenant,
            Listed::OfProject(project),
            page,
            now,
        )
        .await
    }

    /// Returns a page of the checkpoints of one run that the tenant may read, as [`Self::checkpoints`] does: all
    /// checkpoints of its own run, the public ones of another tenant's.
    pub async fn run_checkpoints(
        &self,
        tenant: &TenantId,
        run: &RunId,
        page: Page,
    ) -> Result<(Vec<Checkpoint>, u64), Error> {
        let now = self.core.now();
        checkpoints::list_checkpoints(&mut self.core.reader_of(tenant).await?, tenant, Listed::OfRun(run), page, now)
            .await
    }

    /// Returns the newest checkpoint of a kind that a run has and that the tenant may read.
    pub async fn newest_checkpoint(
        &self,
        tenant: &TenantId,
        run: &RunId,
        kind: CheckpointKind,
    ) -> Result<Option<Checkpoint>, Error> {
        let (conn, now) = (&mut self.core.reader_of(tenant).await?, self.core.now());
        checkpoints::newest_checkpoint(conn, tenant, run, kind, now).await
    }

    /// Returns a checkpoint that the tenant may read: its own or a public one.
    pub async fn checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<Checkpoint, Error> {
        let now = self.core.now();
        checkpoints::readable_checkpoint(&mut self.core.reader_of(tenant).await?, tenant, path, now).await
    }

    /// Returns the folder that a load reads: the checkpoint's folder when this is first called for the request. The
    /// folder stays as long as the run may have to be restored, even if the checkpoint is deleted or replaced.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the tenant can't read such a checkpoint.
    pub async fn pin_load(&self, tenant: &TenantId, request: &RequestId, path: &TinkerPath) -> Result<PathBuf, Error> {
        self.write(PinLoad { tenant: tenant.clone(), request: request.clone(), path: path.clone() }).await
    }

    /// Deletes a checkpoint, and its folder once it is no longer needed.
    pub async fn delete_checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<Checkpoint, Error> {
        self.delete(tenant, path, None).await
    }

    /// Deletes a checkpoint that has expired.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the checkpoint has yet to expire, for example because it was replaced.
    pub async fn delete_expired_checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<Checkpoint, Error> {
        self.delete(tenant, path, Some(self.core.now())).await
    }

    async fn delete(
        &self,
        tenant: &TenantId,
        path: &TinkerPath,
        expired_by: Option<Timestamp>,
    ) -> Result<Checkpoint, Error> {
        let delete =
            DeleteCheckpoint { tenant: tenant.clone(), path: path.clone(), expired_by, audit: self.begin_audit() };
        let (deleted, needed) = self.write(delete).await?;
        if !needed {
            self.core.remove_folder(deleted.dir.clone()).await;
        }
        Ok(deleted)
    }

    /// Sets a checkpoint to expire after some seconds, or never.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number outside the protocol's limits.
    pub async fn set_ttl(&self, tenant: &TenantId, path: &TinkerPath, seconds: Option<i64>) -> Result<(), Error> {
        if let Some(seconds) = seconds
            && !(MIN_TTL_SECONDS..=MAX_TTL_SECONDS).contains(&seconds)
        {
            return Err(Error::Invalid(format!(
                "ttl_seconds {seconds} is invalid: use {MIN_TTL_SECONDS} to {MAX_TTL_SECONDS}, or null"
            )));
        }
        self.change_checkpoint(tenant, path, CheckpointChange::ExpiresIn(seconds)).await
    }

    /// Sets whether other tenants may read a checkpoint.
    pub async fn set_public(&self, tenant: &TenantId, path: &TinkerPath, public: bool) -> Result<(), Error> {
        self.change_checkpoint(tenant, path, CheckpointChange::Public(public)).await
    }

    async fn change_checkpoint(
        &self,
        tenant: &TenantId,
        path: &TinkerPath,
        change: CheckpointChange,
    ) -> Result<(), Error> {
        let (tenant, path, audit) = (tenant.clone(), path.clone(), self.begin_audit());
        self.write(ChangeCheckpoint { tenant, path, change, audit }).await
    }

    /// Returns expired checkpoints of all tenants, up to a thousand.
    pub async fn expired_checkpoints(&self) -> Result<Vec<(TenantId, Checkpoint)>, Error> {
        checkpoints::expired_checkpoints(&mut self.core.system_reader().await?, self.core.now()).await
    }
}

struct PinLoad {
    /// Tenant that may read the checkpoint: that of the request, or one that granted it access.
    tenant: TenantId,
    request: RequestId,
    path: TinkerPath,
}

impl Write for PinLoad {
    type Output = PathBuf;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<PathBuf, Error> {
        if let Some(dir) = folders::load(conn, &self.request).await? {
            return Ok(dir);
        }
        checkpoints::hold_checkpoint(conn, &self.path, &RowScope::of(&self.tenant)).await?;
        let dir = checkpoints::readable_checkpoint(conn, &self.tenant, &self.path, core.now()).await?.dir;
        conn.enter(&RowScope::System).await.map_err(failed("record the folder that a load reads"))?;
        folders::insert_load(conn, &self.request, &dir).await?;
        Ok(dir)
    }
}

/// Returns the audit entry about a checkpoint.
fn checkpoint_entry(
    tenant: &TenantId,
    path: &TinkerPath,
    event: &'static str,
    details: Option<(&str, Value)>,
) -> NewAuditEntry {
    let details: Map<String, Value> = details.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    let (organisation, category) = (tenant.clone(), AuditCategory::Checkpoints);
    NewAuditEntry { organisation, category, event, subject: path.to_string(), details }
}

struct DeleteCheckpoint {
    tenant: TenantId,
    path: TinkerPath,
    audit: Audit,
    /// Time by which the checkpoint must have expired.
    expired_by: Option<Timestamp>,
}

impl Write for DeleteCheckpoint {
    /// Deleted checkpoint, and whether its folder is still needed.
    type Output = (Checkpoint, bool);

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn sessions(&self) -> Vec<SessionId> {
        // The id of a run begins with the id of its session.
        let session = self.path.run.as_str().split_once(':').map(|(session, _)| SessionId::new(session));
        session.into_iter().collect()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(Checkpoint, bool), Error> {
        let deleted = checkpoints::delete_checkpoint(conn, &self.tenant, &self.path, self.expired_by).await?;
        usage::end_storage(conn, &self.path, core.now()).await?;
        gc::revisit_session(conn, &self.path.run).await?;
        // Copies and loads of other tenants may need the files.
        conn.enter(&RowScope::System).await.map_err(failed("delete a checkpoint"))?;
        let needed = folders::is_needed(conn, &deleted.dir, core.revivable_after()).await?;
        conn.enter(&self.scope()).await.map_err(failed("delete a checkpoint"))?;
        let event = if self.expired_by.is_some() { "checkpoint_expire" } else { "checkpoint_delete" };
        let size = Some(("size_bytes", Value::from(deleted.size_bytes)));
        self.audit.append(conn, &checkpoint_entry(&self.tenant, &self.path, event, size)).await?;
        Ok((deleted, needed))
    }
}

enum CheckpointChange {
    /// Seconds until the checkpoint expires; never if `None`.
    ExpiresIn(Option<i64>),
    Public(bool),
}

struct ChangeCheckpoint {
    tenant: TenantId,
    path: TinkerPath,
    change: CheckpointChange,
    audit: Audit,
}

impl Write for ChangeCheckpoint {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let (now, tenant, path) = (core.now(), &self.tenant, &self.path);
        let (event, details) = match self.change {
            CheckpointChange::ExpiresIn(seconds) => {
                let expires_at = seconds.map(|seconds| Timestamp(now.0.saturating_add(seconds.saturating_mul(1000))));
                checkpoints::set_checkpoint_expiry(conn, tenant, path, expires_at, now).await?;
                ("checkpoint_ttl_set", Some(("ttl_seconds", Value::from(seconds))))
            }
            CheckpointChange::Public(public) => {
                checkpoints::set_checkpoint_public(conn, tenant, path, public, now).await?;
                (if public { "checkpoint_publish" } else { "checkpoint_unpublish" }, None)
            }
        };
        self.audit.append(conn, &checkpoint_entry(tenant, path, event, details)).await
    }
}
