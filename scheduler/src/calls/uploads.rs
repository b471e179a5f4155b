//! Uploads of adapters while their pieces arrive in the storage.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trainyard_protocol::{TenantId, UploadId};
use trainyard_storage::StorageError;

use crate::budgets::UPLOAD_PIECES;
use crate::context::core::Core;
use crate::quotas::admission;
use crate::store::db::{Conn, RowScope};
use crate::store::uploads;
use crate::writer::write::Write;
use crate::{Error, NewUpload, Scheduler, Upload, UploadState, UploadedFile};

/// Folder of all uploads in the storage.
const UPLOADS: &str = "uploads";
/// Maximum number of uploads of a tenant that may be open at the same time.
pub const MAX_OPEN_UPLOADS: u64 = 64;

impl Scheduler {
    /// Starts an upload, which is deleted after `retention` unless its check has begun.
    ///
    /// # Errors
    /// [`Error::Invalid`] beyond [`MAX_OPEN_UPLOADS`].
    pub async fn start_upload(&self, tenant: &TenantId, new: NewUpload, retention: Duration) -> Result<Upload, Error> {
        let id = UploadId::from_uuid(self.core.new_uuid());
        let dir = format!("{UPLOADS}/{id}");
        self.core.options.storage.prepare(&dir).await.map_err(|error| storage_failed("start an upload", error))?;
        let start = StartUpload { tenant: tenant.clone(), id, dir: dir.clone().into(), new, retention };
        let started = self.write(start).await;
        if started.is_err() {
            self.core.remove_folder(dir.into()).await;
        }
        started
    }

    /// Returns an upload of the tenant.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown or expired upload.
    pub async fn upload(&self, tenant: &TenantId, id: &UploadId) -> Result<Upload, Error> {
        uploads::upload(&mut self.core.reader_of(tenant).await?, tenant, id, self.core.now()).await
    }

    /// Sets the size of a file, if it is known, and discards the received bytes from the offset `keep` on. Returns the
    /// number of bytes left.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown upload or file, [`Error::Invalid`] if the upload is no longer open, if
    /// another size was given before, and beyond the storage quota.
    pub async fn begin_upload_file(
        &self,
        tenant: &TenantId,
        id: &UploadId,
        file: &str,
        total: Option<u64>,
        keep: u64,
    ) -> Result<u64, Error> {
        let change = FileChange::Begin { total, keep };
        self.change_upload(tenant, id, file, change).await.map(|file| file.received())
    }

    /// Appends bytes to a file, durably.
    ///
    /// # Errors
    /// The errors of [`Self::begin_upload_file`]; [`Error::Invalid`] if the bytes don't begin at the present end of the
    /// file, or exceed its size.
    pub async fn append_to_upload(
        &self,
        tenant: &TenantId,
        id: &UploadId,
        file: &str,
        start: u64,
        bytes: Bytes,
    ) -> Result<(), Error> {
        // Check that the upload is the tenant's before anything is written.
        let upload = self.upload(tenant, id).await?;
        if !upload.files.contains_key(file) {
            return Err(Error::not_found("file", file));
        }
        let length = bytes.len() as u64;
        // Each write has a unique name, so that nothing is overwritten.
        let name = format!("{file}.{start:016x}.{}", self.core.new_uuid().simple());
        let path = format!("{UPLOADS}/{id}/{name}");
        let storage = &self.core.options.storage;
        storage.put(&path, bytes).await.map_err(|error| storage_failed("store a piece of an upload", error))?;
        let change = FileChange::Append { start, name, length };
        let done = self.change_upload(tenant, id, file, change).await;
        if matches!(done, Err(Error::NotFound { .. } | Error::Invalid(_))) {
            // A failure only costs space, until the upload is deleted.
            let _ = storage.remove(vec![path]).await;
        }
        done.map(drop)
    }

    /// Marks a file as complete: its size is the number of received bytes.
    ///
    /// # Errors
    /// The errors of [`Self::begin_upload_file`].
    pub async fn end_upload_file(&self, tenant: &TenantId, id: &UploadId, file: &str) -> Result<u64, Error> {
        self.change_upload(tenant, id, file, FileChange::End).await.map(|file| file.received())
    }

    async fn change_upload(
        &self,
        tenant: &TenantId,
        id: &UploadId,
        file: &str,
        change: FileChange,
    ) -> Result<UploadedFile, Error> {
        let change = ChangeFile { tenant: tenant.clone(), id: id.clone(), file: file.to_owned(), change };
        let changed = self.write(change).await;
        self.core.count_refusal(tenant, &changed);
        let (file, discarded) = changed.map_err(|error| match error {
            // Waiting does not help against this quota.
            Error::Quota(refusal) => Error::Invalid(refusal.to_string()),
            error => error,
        })?;
        if !discarded.is_empty() {
            let _ = self.core.options.storage.remove(discarded).await;
        }
        Ok(file)
    }
}

fn storage_failed(doing: &'static str, error: StorageError) -> Error {
    match error {
        StorageError::NoSpace { .. } => Error::no_space(doing, error),
        error => Error::store(doing, error),
    }
}

struct StartUpload {
    tenant: TenantId,
    id: UploadId,
    dir: PathBuf,
    new: NewUpload,
    retention: Duration,
}

impl Write for StartUpload {
    type Output = Upload;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, _core: &Core) -> Vec<String> {
        vec![self.tenant.to_string()]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Upload, Error> {
        let now = core.now();
        if uploads::open_uploads(conn, &self.tenant).await?.0 >= MAX_OPEN_UPLOADS {
            let text = format!("{MAX_OPEN_UPLOADS} uploads are open; finish them, or wait until one expires");
            return Err(Error::Invalid(text));
        }
        let expires_at = now.plus(self.retention);
        uploads::insert_upload(conn, &self.tenant, &self.id, &self.dir, &self.new, now, expires_at).await?;
        uploads::upload(conn, &self.tenant, &self.id, now).await
    }

    fn committed(&mut self, upload: &Upload, _core: &Arc<Core>) {
        tracing::info!(upload = %upload.id, tenant = %self.tenant, "upload started");
    }
}

enum FileChange {
    /// Sets size and offset: [`Scheduler::begin_upload_file`].
    Begin { total: Option<u64>, keep: u64 },
    /// Appends a piece: [`Scheduler::append_to_upload`].
    Append { start: u64, name: String, length: u64 },
    /// Completes the file: [`Scheduler::end_upload_file`].
    End,
}

struct ChangeFile {
    tenant: TenantId,
    id: UploadId,
    file: String,
    change: FileChange,
}

impl ChangeFile {
    /// Changes a file, in its rows and in the result. Returns the pieces that are no longer needed.
    async fn change(&self, conn: &mut Conn, file: &mut UploadedFile) -> Result<Vec<String>, Error> {
        let name = &self.file;
        let received = file.received();
        match &self.change {
            FileChange::Begin { total, keep } => {
                let starts_over = *keep == 0;
                if let (Some(known), Some(total), false) = (file.total, total, starts_over)
                    && known != *total
                {
                    return Err(Error::Invalid(format!("{name}: the size was {known} bytes before, not {total}")));
                }
                if total.is_some_and(|total| (*keep).min(received) > total) {
                    return Err(Error::Invalid(format!("{name}: {received} bytes arrived, more than {total:?}")));
                }
                file.total = if starts_over { *total } else { total.or(file.total) };
                self.discard(conn, file, *keep).await
            }
            FileChange::Append { start, name: piece, length } => {
                if *start != received {
                    return Err(Error::Invalid(format!("{name}: expected the bytes from {received} on, not {start}")));
                }
                let end = start.saturating_add(*length);
                if let Some(total) = file.total.filter(|total| end > *total) {
                    return Err(Error::Invalid(format!("{name}: expected at most {total} bytes")));
                }
                if file.pieces.len() >= UPLOAD_PIECES {
                    let text = format!(
                        "{name}: it arrived in {UPLOAD_PIECES} pieces, as many as it may; start over with larger ones"
                    );
                    return Err(Error::Invalid(text));
                }
                uploads::insert_piece(conn, &self.id, name, *start, piece, *length).await?;
                file.pieces.push((piece.clone(), *length));
                Ok(Vec::new())
            }
            FileChange::End => {
                file.total = Some(received);
                Ok(Vec::new())
            }
        }
    }

    /// Removes the pieces from the first one that ends behind `keep`.
    async fn discard(&self, conn: &mut Conn, file: &mut UploadedFile, keep: u64) -> Result<Vec<String>, Error> {
        let (mut start, mut kept) = (0, 0);
        for (_, length) in &file.pieces {
            if start + length > keep {
                break;
            }
            (start, kept) = (start + length, kept + 1);
        }
        let discarded = file.pieces.split_off(kept);
        if discarded.is_empty() {
            return Ok(Vec::new());
        }
        uploads::delete_pieces(conn, &self.id, &self.file, start).await?;
        Ok(discarded.into_iter().map(|(name, _)| format!("{UPLOADS}/{}/{name}", self.id)).collect())
    }
}

impl Write for ChangeFile {
    /// Changed file, and names of pieces that are no longer needed.
    type Output = (UploadedFile, Vec<String>);

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, _core: &Core) -> Vec<String> {
        vec![self.tenant.to_string()]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let mut upload = uploads::upload(conn, &self.tenant, &self.id, core.now()).await?;
        if upload.state != UploadState::Open {
            return Err(Error::Invalid(format!("upload {} is finished and can't be changed", self.id)));
        }
        let mut file = upload.files.remove(&self.file).ok_or_else(|| Error::not_found("file", &self.file))?;
        let discarded = self.change(conn, &mut file).await?;
        upload.files.insert(self.file.clone(), file.clone());
        uploads::set_sizes(conn, &self.id, &upload.files).await?;
        admission::check_uploads(conn, core, &self.tenant).await?;
        Ok((file, discarded))
    }
}
