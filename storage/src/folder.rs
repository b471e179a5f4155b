//! A folder as storage: the files are where the engine writes and reads them, nothing is copied.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Area, Older, Pieces, StorageError};

/// Bytes read from a file at a time.
const PIECE: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: Arc<Path>,
}

impl Folder {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root: root.into() }
    }

    /// An absolute location stays what it is.
    pub(super) fn path(&self, location: &Path) -> PathBuf {
        self.root.join(location)
    }

    pub(super) async fn create(&self, root: &str) -> Result<(), StorageError> {
        let dir = self.root.join(root);
        blocking("create", Path::new(root), move || fs::create_dir_all(dir)).await
    }

    pub(super) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.root.join(name);
        blocking("write", Path::new(name), move || write_synced(&path, &bytes)).await
    }

    pub(super) async fn get(&self, name: &str) -> Result<Bytes, StorageError> {
        let path = self.root.join(name);
        blocking("read", Path::new(name), move || fs::read(path)).await.map(Bytes::from)
    }

    pub(super) async fn remove(&self, names: Vec<String>) -> Result<(), StorageError> {
        let root = Arc::clone(&self.root);
        let first = PathBuf::from(names.first().map(String::as_str).unwrap_or_default());
        let remove = move || names.iter().try_for_each(|name| absent_is_fine(fs::remove_file(root.join(name))));
        blocking("remove", &first, remove).await
    }

    pub(super) async fn files(&self, location: &Path) -> Result<BTreeMap<String, u64>, StorageError> {
        let dir = self.path(location);
        blocking("list", location, move || {
            let mut files = BTreeMap::new();
            for entry in fs::read_dir(dir)? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                    files.insert(name, metadata.len());
                }
            }
            Ok(files)
        })
        .await
    }

    pub(super) async fn read(&self, location: &Path, file: &str) -> Result<(u64, Pieces), StorageError> {
        let name = location.join(file);
        let path = self.path(&name);
        let opened = tokio::fs::File::open(path).await.map_err(|error| failure("read", &name, &error))?;
        let size = opened.metadata().await.map_err(|error| failure("read", &name, &error))?.len();
        let pieces = stream::try_unfold(opened, |mut file| async move {
            let mut piece = BytesMut::with_capacity(PIECE);
            let read = file.read_buf(&mut piece).await?;
            Ok::<_, io::Error>((read > 0).then(|| (piece.freeze(), file)))
        });
        Ok((size, pieces.map_err(move |error| failure("read", &name, &error)).boxed()))
    }

    /// The engine wrote the folder in its place, synced and renamed; a copy of another is made likewise.
    pub(super) async fn publish(&self, from: &Path, location: &Path) -> Result<(), StorageError> {
        let (from, to) = (from.to_owned(), self.path(location));
        blocking("write", location, move || {
            if from == to {
                return fs::metadata(to).map(|_| ());
            }
            copy_folder(&from, &to)
        })
        .await
    }

    pub(super) async fn remove_folder(&self, location: &Path) -> Result<(), StorageError> {
        let dir = self.path(location);
        blocking("remove", location, move || absent_is_fine(remove_any(&dir))).await
    }

    pub(super) async fn older(
        &self,
        area: Area,
        before: SystemTime,
        after: Option<String>,
        limit: usize,
    ) -> Result<Older, StorageError> {
        let root = Arc::clone(&self.root);
        let walk = move || {
            let mut walk = Walk { root: &root, before, limit, seen: 0, found: Older::default() };
            let after: Vec<&str> = after.iter().flat_map(|after| after.split('/')).skip(1).collect();
            walk.descend(Path::new(area.root), area.depth, &after)?;
            Ok(walk.found)
        };
        blocking("list", Path::new(area.root), walk).await
    }
}

/// A walk through an area in the order of names, which goes on behind where the last one ended.
struct Walk<'a> {
    root: &'a Path,
    before: SystemTime,
    limit: usize,
    seen: usize,
    found: Older,
}

impl Walk<'_> {
    /// Looks at what is below `dir`, `depth` levels above the entries. `after` are the names from here on of the
    /// entry that was seen last.
    fn descend(&mut self, dir: &Path, depth: usize, after: &[&str]) -> io::Result<()> {
        let names = sorted_names(&self.root.join(dir))?;
        let empty = names.is_empty();
        for name in names {
            let below = match after.first().map(|last| name.as_str().cmp(last)) {
                Some(Ordering::Less) => continue,
                Some(Ordering::Equal) if depth == 1 => continue,
                Some(Ordering::Equal) => &after[1..],
                _ => &[],
            };
            let path = dir.join(&name);
            if depth > 1 {
                self.descend(&path, depth - 1, below)?;
            } else {
                self.look_at(path)?;
            }
            if self.found.next.is_some() {
                return Ok(());
            }
        }
        if empty && dir.components().count() > 1 && self.is_older(dir)? {
            // Something may be written into it right now; then it stays.
            let _ = fs::remove_dir(self.root.join(dir));
        }
        Ok(())
    }

    fn look_at(&mut self, path: PathBuf) -> io::Result<()> {
        self.seen += 1;
        if self.seen >= self.limit {
            self.found.next = Some(path.to_string_lossy().into_owned());
        }
        if self.is_older(&path)? {
            self.found.entries.push(path);
        }
        Ok(())
    }

    fn is_older(&self, path: &Path) -> io::Result<bool> {
        match last_change(&self.root.join(path)) {
            Ok(changed) => Ok(changed < self.before),
            // It was removed just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns the names in a folder; an absent folder is empty. Names that are not UTF-8 are skipped.
fn sorted_names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// When something in a file or folder was last changed.
fn last_change(path: &Path) -> io::Result<SystemTime> {
    let metadata = fs::symlink_metadata(path)?;
    let mut latest = metadata.modified()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            latest = latest.max(last_change(&entry?.path())?);
        }
    }
    Ok(latest)
}

fn remove_any(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // A part of a file helps nobody, and takes what may be the last of the space.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    // The name is durable only once the folder is.
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // With the permissions that all files of the storage have here, whatever those of the original.
        let mut copy = File::create(target)?;
        io::copy(&mut File::open(entry.path())?, &mut copy)?;
        copy.sync_all()?;
    }
    for dir in to.ancestors().take(4).filter(|dir| !dir.as_os_str().is_empty()) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Writes a file from its pieces, which must be of this size together.
pub(super) async fn write_pieces(path: &Path, mut pieces: Pieces, size: u64) -> Result<u64, StorageError> {
    let failed = |error: io::Error| failure("write", path, &error);
    let mut file = tokio::fs::File::create(path).await.map_err(failed)?;
    let mut written = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        written += piece.len() as u64;
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    if written != size {
        return Err(StorageError::failed("read", path.display(), format!("expected {size} bytes, found {written}")));
    }
    Ok(written)
}

fn failure(doing: &'static str, name: &Path, error: &io::Error) -> StorageError {
    match error.kind() {
        io::ErrorKind::NotFound => StorageError::NotFound(name.display().to_string()),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StorageError::NoSpace { doing, name: name.display().to_string() }
        }
        _ => StorageError::failed(doing, name.display(), error),
    }
}

async fn blocking<T: Send + 'static>(
    doing: &'static str,
    name: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StorageError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| failure(doing, name, &error)),
        Err(error) => Err(StorageError::failed(doing, name.display(), error)),
    }
}
