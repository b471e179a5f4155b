//! Checks of complete uploads: a run loads and exports them, and they become a checkpoint.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{RunId, TenantId, TinkerPath, UploadId};

use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::{runs, uploads};
use crate::writer::audit::Audit;
use crate::writer::write::Write;
use crate::{AuditCategory, Error, NewAuditEntry, Scheduler, Upload, UploadEnd, UploadState};

impl Scheduler {
    /// Starts the check of an upload by a run, unless another run already checks it. The files can't be changed from
    /// then on. Returns the run that performs the check.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown upload, [`Error::Invalid`] if a file is incomplete.
    pub async fn check_upload(
        &self,
        tenant: &TenantId,
        id: &UploadId,
        run: &RunId,
        retention: Duration,
    ) -> Result<Upload, Error> {
        let by = self.begin_audit();
        self.write(CheckUpload { tenant: tenant.clone(), id: id.clone(), run: run.clone(), retention, by }).await
    }

    /// Records the result of a run's check, and removes the files of an upload that has ended. A repetition, or the end
    /// of another run's check, changes nothing else. The export itself records that the run has exported the upload.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown upload.
    pub async fn end_upload_check(
        &self,
        tenant: &TenantId,
        id: &UploadId,
        run: &RunId,
        end: UploadEnd,
    ) -> Result<(), Error> {
        let end = EndCheck { tenant: tenant.clone(), id: id.clone(), run: run.clone(), end };
        if let Some(dir) = self.write(end).await? {
            let core = Arc::clone(&self.core);
            // Runs as its own task, so that a caller who goes away does not interrupt it.
            let removed = self.core.runtime.spawn(async move { core.remove_folder(dir).await });
            let _ = removed.await;
        }
        Ok(())
    }
}

struct CheckUpload {
    tenant: TenantId,
    id: UploadId,
    run: RunId,
    retention: Duration,
    /// Actor who asks for the check.
    by: Audit,
}

impl Write for CheckUpload {
    type Output = Upload;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, _core: &Core) -> Vec<String> {
        vec![self.tenant.to_string()]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Upload, Error> {
        let now = core.now();
        let mut upload = uploads::upload(conn, &self.tenant, &self.id, now).await?;
        if upload.state != UploadState::Open {
            return Ok(upload);
        }
        upload.check_complete()?;
        upload.expires_at = now.plus(self.retention);
        let by = self.by.to_text();
        uploads::set_run(conn, &self.id, Some(&self.run), Some(&by), upload.expires_at).await?;
        upload.state = UploadState::Checking(self.run.clone());
        Ok(upload)
    }
}

struct EndCheck {
    tenant: TenantId,
    id: UploadId,
    run: RunId,
    end: UploadEnd,
}

impl EndCheck {
    async fn record(&self, conn: &mut Conn, core: &Core, upload: &Upload) -> Result<(), Error> {
        match &self.end {
            UploadEnd::Checkpoint(path) => record_export(conn, core, &self.tenant, path).await,
            UploadEnd::Refused(error) => uploads::set_end(conn, &self.id, Err(error)).await,
            UploadEnd::Unchecked => uploads::set_run(conn, &self.id, None, None, upload.expires_at).await,
        }
    }
}

impl Write for EndCheck {
    /// Folder of the upload, if it is no longer needed.
    type Output = Option<PathBuf>;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Option<PathBuf>, Error> {
        let upload = uploads::upload(conn, &self.tenant, &self.id, core.now()).await?;
        if matches!(upload.state, UploadState::Finished(_) | UploadState::Refused(_)) {
            // The export may have recorded the end, or a kill interrupted the removal: files may still exist.
            return Ok(Some(upload.dir));
        }
        if upload.state != UploadState::Checking(self.run.clone()) {
            return Ok(None);
        }
        self.record(conn, core, &upload).await?;
        Ok((self.end != UploadEnd::Unchecked).then_some(upload.dir))
    }

    fn committed(&mut self, dir: &Option<PathBuf>, _core: &Arc<Core>) {
        if dir.is_none() {
            return;
        }
        let id = &self.id;
        match &self.end {
            UploadEnd::Checkpoint(path) => tracing::info!(upload = %id, %path, "upload became a checkpoint"),
            UploadEnd::Refused(error) => tracing::info!(upload = %id, cause = %error, "upload refused"),
            UploadEnd::Unchecked => {}
        }
    }
}

/// Records that a run has exported the upload that it checks, if it checks one. This happens in the same transaction as
/// the checkpoint, so that no later call is needed. The run is not trained, and the audit log names the actor who asked
/// for the check.
pub(crate) async fn record_export(
    conn: &mut Conn,
    core: &Core,
    tenant: &TenantId,
    path: &TinkerPath,
) -> Result<(), Error> {
    let Some((id, by)) = uploads::checked_by_run(conn, tenant, &path.run).await? else { return Ok(()) };
    runs::set_imported(conn, &path.run, &format!("upload:{id}")).await?;
    uploads::set_end(conn, &id, Ok(path)).await?;
    let entry = NewAuditEntry {
        organisation: tenant.clone(),
        category: AuditCategory::Checkpoints,
        event: "checkpoint_upload",
        subject: path.to_string(),
        details: [("upload_id".to_owned(), id.to_string().into())].into_iter().collect(),
    };
    Audit::on_behalf_of(by.as_deref(), core.now(), core.new_uuid()).append(conn, &entry).await
}
