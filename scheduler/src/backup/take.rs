//! Takes backups of a running service.

use std::fs;
use std::future::Future;
use std::io;
use std::path::PathBuf;

use trainyard_storage::Storage;

use super::digest::DigestWriter;
use super::files::Partial;
use super::hold::Hold;
use super::objects::{self, Needed};
use super::rows::{Named, dump, file_of};
use super::{BackupError, Manifest};
use crate::store::copies::TABLES;
use crate::store::db::{Conn, connect_as_system};
use crate::store::{failed, schema};
use crate::{Clock, Database, SystemClock};

/// Folder of a backup that has the layout of the data folder.
pub(super) const PRIVATE: &str = "private";

/// Source and destination of a backup.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Database, which other processes may be using.
    pub database: Database,
    /// Storage that belongs to the database.
    pub storage: Storage,
    /// Destination, which must be empty or missing.
    pub to: PathBuf,
    /// Files of the data folder to include if they exist.
    pub private: Vec<PathBuf>,
    /// Release of the running program.
    pub release: String,
    /// Whether to continue if the storage lacks objects that the database names.
    pub allow_missing: bool,
}

/// Takes a backup, unless `interrupted` completes first. The service may continue: the backup contains everything
/// committed when it began.
///
/// # Errors
/// Nothing is left at the target in case of an error.
pub async fn backup(options: &Backup, interrupted: impl Future<Output = ()>) -> Result<Manifest, BackupError> {
    if let Database::Sqlite(path) = &options.database
        && !path.exists()
    {
        return Err(BackupError::Refused(format!("the database {} does not exist", path.display())));
    }
    // An older schema is migrated first, because it has no table for holds.
    let mut conn = connect_as_system(&options.database).await?;
    schema::ensure_current(&mut conn, &options.database).await?;
    let partial = Partial::create(&options.to)?;
    let hold = Hold::place(&options.database).await?;
    let taken = tokio::select! {
        biased;
        () = interrupted => Err(BackupError::Interrupted),
        lost = hold.keep() => Err(lost),
        taken = take(options, conn, &partial) => taken,
    };
    // If the hold still exists, no object that the backup needs was removed.
    let held = if taken.is_ok() { hold.renew().await } else { Ok(()) };
    hold.release().await;
    let manifest = taken?;
    held?;
    manifest.write(partial.folder()).await?;
    partial.complete()?;
    Ok(manifest)
}

async fn take(options: &Backup, mut conn: Conn, partial: &Partial) -> Result<Manifest, BackupError> {
    let taken_at = SystemClock.now();
    conn.begin_snapshot().await.map_err(failed("read the database"))?;
    let version = schema::version(&mut conn).await?;
    let mut manifest = Manifest::new(version, options.release.clone(), taken_at);
    let mut named = Named::default();
    for table in &TABLES {
        let (rows, digest) = dump(&mut conn, table, partial, &mut named).await?;
        manifest.rows.insert(table.name.to_owned(), rows);
        manifest.files.insert(file_of(table), digest);
    }
    let needed = Needed::find(&mut conn, named).await?;
    conn.rollback().await.map_err(failed("read the database"))?;
    conn.close().await.map_err(failed("close the database"))?;
    let copied = objects::copy(&options.storage, needed, partial).await?;
    if !copied.missing.is_empty() && !options.allow_missing {
        return Err(BackupError::Missing(copied.missing.into_iter().collect()));
    }
    manifest.files.extend(copied.files);
    manifest.missing = copied.missing;
    copy_private(options, partial, &mut manifest).await?;
    Ok(manifest)
}

async fn copy_private(options: &Backup, partial: &Partial, manifest: &mut Manifest) -> Result<(), BackupError> {
    for path in &options.private {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(BackupError::file(path)(error)),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = format!("{PRIVATE}/{name}");
        let mut copy = DigestWriter::create(&partial.place(&file)?).await?;
        copy.write(&bytes).await?;
        manifest.files.insert(file, copy.finish().await?);
    }
    Ok(())
}
