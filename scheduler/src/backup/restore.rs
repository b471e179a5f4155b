//! Restores a backup into an empty database and an empty storage.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use trainyard_storage::{Area, Storage};

use super::load::load_tables;
use super::objects::OBJECTS;
use super::take::PRIVATE;
use super::{BackupError, Manifest, verify};
use crate::processes::database_lock::lock_database;
use crate::store::copies::{is_empty, table_names};
use crate::store::db::{Conn, connect_as_system};
use crate::store::{blobs, folders, schema};
use crate::{Database, Error, Timestamp};

/// Returns the areas of the storage.
fn areas() -> impl Iterator<Item = Area> {
    std::iter::once(blobs::AREA).chain(folders::AREAS)
}

/// Source and destination of a restoration.
#[derive(Clone, Debug)]
pub struct Restore {
    /// Folder of the backup.
    pub from: PathBuf,
    /// Database without rows; a SQLite file is created.
    pub database: Database,
    /// Storage, which must be empty.
    pub storage: Storage,
    /// Existing folder for files that are private to a process, such as keys.
    pub data_dir: PathBuf,
}

/// Restores a backup: first the objects, then all rows in one transaction. So a database with rows has all of them, and
/// everything that they name. All leases are free afterwards: workers claim the runs and recover them.
///
/// # Errors
/// [`BackupError::Refused`] if database or storage are not empty or their schema differs, [`BackupError::Damaged`]
/// before anything is written.
pub async fn restore(options: &Restore) -> Result<Manifest, BackupError> {
    let Restore { from, database, storage, data_dir } = options;
    let manifest = verify(from)?;
    if manifest.schema_version > schema::newest() {
        return Err(BackupError::Refused(format!(
            "the backup has schema version {}, but this program supports versions up to {}: use release {} or newer",
            manifest.schema_version,
            schema::newest(),
            manifest.release
        )));
    }
    if manifest.schema_version < schema::INITIAL {
        return Err(BackupError::Refused(format!(
            "the backup has schema version {}, expected {} or later: restore it with release {}, migrate, and back up again",
            manifest.schema_version,
            schema::INITIAL,
            manifest.release
        )));
    }
    let _lock = match database {
        Database::Sqlite(path) => Some(lock_database(path).await?),
        Database::Postgres(_) => None,
    };
    let mut conn = connect_as_system(database).await?;
    ensure_no_rows(&mut conn, database, manifest.schema_version).await?;
    ensure_no_objects(storage).await?;
    restore_private(from, data_dir)?;
    restore_objects(from, storage).await?;
    schema::migrate_to(&mut conn, database, manifest.schema_version).await?;
    load_tables(&mut conn, from, &manifest).await?;
    schema::migrate_to(&mut conn, database, schema::newest()).await?;
    conn.close().await.map_err(|error| Error::database("close the database", &error))?;
    Ok(manifest)
}

/// Tables that contain rows in a database that has only been migrated.
const OF_MIGRATIONS: [&str; 3] = ["sqlite_sequence", "schema_compatibility", "usage_progress"];

/// Refuses a database with rows. An empty schema is accepted if its version is that of the backup: rows can't go
/// through migrations that have already been applied.
async fn ensure_no_rows(conn: &mut Conn, database: &Database, backup: i64) -> Result<(), BackupError> {
    let version = schema::version(conn).await?;
    let of_migrations = |name: &str| name.starts_with("_sqlx") || OF_MIGRATIONS.contains(&name);
    for table in table_names(conn).await?.iter().filter(|name| !of_migrations(name)) {
        if version == 0 || !is_empty(conn, table).await? {
            let what = if version == 0 { "has a table" } else { "is not empty: it has rows in" };
            let text = format!("database {database} {what} {table}; restore into a new database");
            return Err(BackupError::Refused(text));
        }
    }
    if version != 0 && version != backup {
        return Err(BackupError::Refused(format!(
            "database {database} has schema version {version}, and the backup {backup}: restore into a new database; \
             its schema is created and migrated here"
        )));
    }
    Ok(())
}

async fn ensure_no_objects(storage: &Storage) -> Result<(), BackupError> {
    for area in areas() {
        let found = storage.older(area, Timestamp(i64::MAX).system_time(), None, 1).await?;
        if let Some(entry) = found.entries.first() {
            let text = format!(
                "the storage is not empty: it contains {}; restore into a new one, or remove what an interrupted restore left",
                entry.display()
            );
            return Err(BackupError::Refused(text));
        }
    }
    Ok(())
}

/// Restores private files, such as keys, with access only for their owner.
fn restore_private(from: &Path, data_dir: &Path) -> Result<(), BackupError> {
    let folder = from.join(PRIVATE);
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&folder).map_err(BackupError::file(&folder))? {
        let entry = entry.map_err(BackupError::file(&folder))?;
        let (path, to) = (entry.path(), data_dir.join(entry.file_name()));
        let bytes = fs::read(&path).map_err(BackupError::file(&path))?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to);
        let mut file = created.map_err(BackupError::file(&to))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(BackupError::file(&to))?;
    }
    Ok(())
}

async fn restore_objects(from: &Path, storage: &Storage) -> Result<(), BackupError> {
    let root = from.join(OBJECTS);
    for area in areas() {
        storage.prepare(area.root).await?;
        let mut folders = Vec::new();
        find_folders(&root, Path::new(area.root), &mut folders)?;
        for folder in folders {
            storage.publish(&root.join(&folder), &folder).await?;
        }
    }
    Ok(())
}

/// Finds the folders that contain files, at or below a folder, if it exists.
fn find_folders(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), BackupError> {
    let path = root.join(folder);
    if !path.is_dir() {
        return Ok(());
    }
    let mut has_files = false;
    for entry in fs::read_dir(&path).map_err(BackupError::file(&path))? {
        let entry = entry.map_err(BackupError::file(&path))?;
        if entry.path().is_dir() {
            find_folders(root, &folder.join(entry.file_name()), found)?;
        } else {
            has_files = true;
        }
    }
    if has_files {
        found.push(folder.to_owned());
    }
    Ok(())
}
