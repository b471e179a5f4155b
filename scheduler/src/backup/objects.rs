//! Copies objects of the storage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use futures::{StreamExt, TryStreamExt, stream};
use trainyard_storage::{Storage, StorageError};

use super::BackupError;
use super::digest::{DigestWriter, FileDigest};
use super::files::Partial;
use super::rows::Named;
use crate::Timestamp;
use crate::store::blobs;
use crate::store::db::Conn;
use crate::store::folders::is_needed;

/// Number of files that are copied at the same time.
const PARALLEL: usize = 8;

/// Folder of a backup that has the layout of the storage.
pub(super) const OBJECTS: &str = "objects";

/// Objects of the storage that a backup must contain, and those that it copies if they exist.
pub(super) struct Needed {
    blobs: BTreeSet<String>,
    folders: BTreeSet<PathBuf>,
    /// Folders of expired sessions, which may be revived or may have been collected.
    perhaps: BTreeSet<PathBuf>,
}

impl Needed {
    /// Selects the named objects that are still needed, according to the snapshot.
    pub(super) async fn find(conn: &mut Conn, named: Named) -> Result<Self, BackupError> {
        let mut needed = Self { blobs: named.blobs, folders: BTreeSet::new(), perhaps: BTreeSet::new() };
        for folder in named.folders {
            if !folder.components().all(|part| matches!(part, Component::Normal(_))) {
                let text = format!("the database names {}, which is outside the storage", folder.display());
                return Err(BackupError::Refused(text));
            }
            if is_needed(conn, &folder, Timestamp(i64::MAX)).await? {
                needed.folders.insert(folder);
            } else if is_needed(conn, &folder, Timestamp(0)).await? {
                needed.perhaps.insert(folder);
            }
        }
        Ok(needed)
    }
}

/// Files that were copied, and objects that were missing.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) files: BTreeMap<String, FileDigest>,
    pub(super) missing: BTreeSet<String>,
}

/// Copies the needed objects. A hold must exist during the call.
pub(super) async fn copy(storage: &Storage, needed: Needed, partial: &Partial) -> Result<Copied, BackupError> {
    let mut copied = Copied::default();
    let blobs = Path::new(blobs::AREA.root);
    let mut files: Vec<(PathBuf, String, bool)> =
        needed.blobs.into_iter().map(|name| (blobs.to_owned(), name, true)).collect();
    let required = needed.folders.into_iter().map(|folder| (folder, true));
    for (folder, required) in required.chain(needed.perhaps.into_iter().map(|folder| (folder, false))) {
        match storage.files(&folder).await {
            Ok(found) => files.extend(found.into_keys().map(|name| (folder.clone(), name, required))),
            Err(StorageError::NotFound(_)) if !required => {}
            Err(StorageError::NotFound(name)) => drop(copied.missing.insert(name)),
            Err(error) => return Err(error.into()),
        }
    }
    let copies = stream::iter(files.into_iter().map(|(folder, name, required)| async move {
        match copy_file(storage, &folder, &name, partial).await {
            Ok(copy) => Ok((Some(copy), None)),
            Err(BackupError::Storage(StorageError::NotFound(name))) => Ok((None, required.then_some(name))),
            Err(error) => Err(error),
        }
    }));
    let mut copies = copies.buffer_unordered(PARALLEL);
    while let Some((file, missing)) = copies.try_next().await? {
        copied.files.extend(file);
        copied.missing.extend(missing);
    }
    Ok(copied)
}

async fn copy_file(
    storage: &Storage,
    folder: &Path,
    name: &str,
    partial: &Partial,
) -> Result<(String, FileDigest), BackupError> {
    let (size, mut pieces) = storage.read(folder, name).await?;
    let file = format!("{OBJECTS}/{}/{name}", folder.display());
    let mut copy = DigestWriter::create(&partial.place(&file)?).await?;
    while let Some(piece) = pieces.try_next().await? {
        copy.write(&piece).await?;
    }
    let written = copy.finish().await?;
    if written.size != size {
        let text = format!("expected {size} bytes of {file}, found {}", written.size);
        return Err(BackupError::Refused(text));
    }
    Ok((file, written))
}
