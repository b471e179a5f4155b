//! The folders that the engine writes and reads. If the storage is a folder, they are in it. If the storage is a
//! bucket, they are in a work area on this machine: written folders are uploaded, and fetched folders are cached within
//! the cache's capacity. Other processes that compute with this one fetch the same folders.

mod other_ranks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

pub use other_ranks::OtherRanks;
use other_ranks::fetch_on;
use trainyard_storage::{Storage, StorageError};

/// The work area in the data folder. Nothing in it outlives the process.
const WORK: &str = "work";

/// The folders of one worker.
#[derive(Clone)]
pub struct Workspace {
    storage: Storage,
    work: Arc<Path>,
    next: Arc<AtomicU64>,
    copies: Arc<Mutex<Copies>>,
    /// Processes that read the same folders from copies of their own.
    ranks: Option<Arc<dyn OtherRanks>>,
}

/// A folder that the engine may read while this guard is held.
#[derive(Debug)]
pub struct FolderGuard(Arc<PathBuf>);

impl FolderGuard {
    /// Returns the path of the folder on this machine.
    pub fn dir(&self) -> &Path {
        &self.0
    }
}

impl Workspace {
    /// Opens an empty work area in the data folder, with a cache of `capacity` bytes. It is unused if the storage is a
    /// folder.
    ///
    /// # Errors
    /// Fails if the files of an earlier process can't be removed.
    pub fn open(storage: Storage, data_dir: &Path, capacity: u64) -> io::Result<Self> {
        Ok(Self {
            storage,
            work: emptied(data_dir.join(WORK))?.into(),
            next: Arc::default(),
            copies: Arc::new(Mutex::new(Copies::new(capacity))),
            ranks: None,
        })
    }

    /// Adds other processes, which need the folders that this one reads.
    #[must_use]
    pub fn with_ranks(self, ranks: Arc<dyn OtherRanks>) -> Self {
        Self { ranks: Some(ranks), ..self }
    }

    /// Returns the path to which the engine must write the folder for this location in the storage.
    pub fn target(&self, location: &Path) -> PathBuf {
        self.storage.local(location).unwrap_or_else(|| self.fresh())
    }

    /// Stores a folder that the engine has written. Afterwards the folder is complete and may be recorded.
    pub async fn publish(&self, written: &Path, location: &Path) -> Result<(), StorageError> {
        self.storage.publish(written, location).await?;
        if self.storage.local(location).is_none() {
            let size = self.storage.files(location).await?.values().sum();
            // It will probably be read soon. Other ranks have not written it.
            drop(self.add(location, written.to_owned(), size, self.ranks.is_none()));
            // Nobody reads it yet, so it is evicted too if there is no room.
            self.make_room();
        }
        Ok(())
    }

    /// Returns a folder of the storage, if this rank and the others can read it without fetching.
    pub fn present(&self, location: &Path) -> Option<FolderGuard> {
        match self.storage.local(location) {
            Some(dir) => Some(FolderGuard(Arc::new(dir))),
            None => self.copies().lease(location).filter(|(_, everywhere)| *everywhere).map(|(guard, _)| guard),
        }
    }

    /// Fetches a folder of the storage for the engine to read.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotFound`] if the folder does not exist.
    pub async fn fetch(&self, location: &Path) -> Result<FolderGuard, StorageError> {
        if let Some(dir) = self.storage.local(location) {
            self.storage.files(location).await?;
            return Ok(FolderGuard(Arc::new(dir)));
        }
        // One caller fetches; others that want the same folder wait for it.
        let gate = self.copies().gate(location);
        let _turn = gate.lock().await;
        let held = self.copies().lease(location);
        if let Some((lease, everywhere)) = held {
            if !everywhere {
                self.fetch_on_ranks(lease.dir(), location).await?;
                self.copies().mark_everywhere(location);
            }
            return Ok(lease);
        }
        let dir = self.fresh();
        let (here, there) = tokio::join!(fetch_to(&self.storage, location, &dir), self.fetch_on_ranks(&dir, location));
        match (here, there) {
            (Ok(size), Ok(())) => Ok(self.add(location, dir, size, true)),
            (here, there) => {
                self.discard(&dir);
                Err(here
                    .err()
                    .or(there.err())
                    .unwrap_or_else(|| StorageError::NotFound(location.display().to_string())))
            }
        }
    }

    /// Makes the other ranks fetch a folder that this rank has at `dir` or is fetching.
    async fn fetch_on_ranks(&self, dir: &Path, location: &Path) -> Result<(), StorageError> {
        let Some(ranks) = &self.ranks else { return Ok(()) };
        let fetched = fetch_on(&**ranks, dir, location).await;
        if fetched.is_err() {
            // Some ranks may have fetched it.
            ranks.remove(dir);
        }
        fetched
    }

    /// Keeps a copy, and evicts others if they no longer fit.
    fn add(&self, location: &Path, dir: PathBuf, size: u64, everywhere: bool) -> FolderGuard {
        let (lease, older) = self.copies().add(location, dir, size, everywhere);
        if let Some(older) = older {
            self.discard(&older);
        }
        self.make_room();
        lease
    }

    /// Removes unread copies until the rest is within the capacity.
    fn make_room(&self) {
        let removed = self.copies().evict();
        removed.iter().for_each(|dir| self.discard(dir));
    }

    /// Removes a copy on all ranks.
    fn discard(&self, dir: &Path) {
        remove(dir);
        if let Some(ranks) = &self.ranks {
            ranks.remove(dir);
        }
    }

    /// A name in the work area that was never used before: the engine may cache what it read from a folder by its path.
    fn fresh(&self) -> PathBuf {
        self.work.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies of stored folders on this machine. The least recently used are evicted first.
struct Copies {
    capacity: u64,
    bytes: u64,
    /// Number of uses so far.
    uses: u64,
    by_location: BTreeMap<PathBuf, CachedFolder>,
    gates: BTreeMap<PathBuf, Arc<tokio::sync::Mutex<()>>>,
}

struct CachedFolder {
    dir: Arc<PathBuf>,
    size: u64,
    last_use: u64,
    /// Whether all ranks have the copy.
    everywhere: bool,
}

impl Copies {
    fn new(capacity: u64) -> Self {
        Self { capacity, bytes: 0, uses: 0, by_location: BTreeMap::new(), gates: BTreeMap::new() }
    }

    fn gate(&mut self, location: &Path) -> Arc<tokio::sync::Mutex<()>> {
        self.gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        Arc::clone(self.gates.entry(location.to_owned()).or_default())
    }

    /// A copy, and whether all ranks have it.
    fn lease(&mut self, location: &Path) -> Option<(FolderGuard, bool)> {
        self.uses += 1;
        let copy = self.by_location.get_mut(location)?;
        copy.last_use = self.uses;
        Some((FolderGuard(Arc::clone(&copy.dir)), copy.everywhere))
    }

    fn mark_everywhere(&mut self, location: &Path) {
        if let Some(copy) = self.by_location.get_mut(location) {
            copy.everywhere = true;
        }
    }

    /// Adds a copy and returns an older one of the same folder, which must be removed.
    fn add(
        &mut self,
        location: &Path,
        dir: PathBuf,
        size: u64,
        everywhere: bool,
    ) -> (FolderGuard, Option<Arc<PathBuf>>) {
        self.uses += 1;
        let dir = Arc::new(dir);
        let copy = CachedFolder { dir: Arc::clone(&dir), size, last_use: self.uses, everywhere };
        self.bytes += size;
        let older = self.by_location.insert(location.to_owned(), copy);
        self.bytes -= older.as_ref().map_or(0, |older| older.size);
        (FolderGuard(dir), older.map(|older| older.dir))
    }

    /// Evicts copies until the others fit, and returns their folders, which must be removed. Folders that the engine is
    /// reading stay, even beyond the capacity.
    fn evict(&mut self) -> Vec<Arc<PathBuf>> {
        let mut evicted = Vec::new();
        while self.bytes > self.capacity {
            let idle = self.by_location.iter().filter(|(_, copy)| Arc::strong_count(&copy.dir) == 1);
            let Some(location) = idle.min_by_key(|(_, copy)| copy.last_use).map(|(location, _)| location.clone())
            else {
                break;
            };
            if let Some(copy) = self.by_location.remove(&location) {
                self.bytes -= copy.size;
                evicted.push(copy.dir);
            }
        }
        evicted
    }
}

/// Creates a work area without the files of an earlier process.
///
/// # Errors
/// Fails if those files can't be removed.
pub(crate) fn emptied(work: PathBuf) -> io::Result<PathBuf> {
    match fs::remove_dir_all(&work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(work),
    }
}

/// Fetches a folder of the storage to `dir`. The folder `dir` must not exist, and does not exist after a failure.
/// Returns the size in bytes.
///
/// # Errors
///
/// [`StorageError::NotFound`] if the folder does not exist.
pub(crate) async fn fetch_to(storage: &Storage, location: &Path, dir: &Path) -> Result<u64, StorageError> {
    let failed = |error: io::Error| StorageError::Failed {
        doing: "fetch",
        name: location.display().to_string(),
        detail: error.to_string(),
    };
    tokio::fs::create_dir_all(dir).await.map_err(failed)?;
    let fetched = storage.fetch(location, dir).await;
    if fetched.is_err() {
        remove(dir);
    }
    fetched
}

pub(crate) fn remove(dir: &Path) {
    if let Err(error) = fs::remove_dir_all(dir)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(dir = %dir.display(), %error, "failed to remove the local copy of a stored folder");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn write(workspace: &Workspace, location: &Path, text: &str) -> PathBuf {
        let dir = workspace.target(location);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("file"), text).unwrap();
        dir
    }

    /// Covers a folder and an object store.
    #[tokio::test]
    async fn what_was_published_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for storage in [Storage::folder(folder.path()), Storage::in_memory()] {
            let data = tempfile::tempdir().unwrap();
            let workspace = Workspace::open(storage.clone(), data.path(), 1 << 20).unwrap();
            let (a, b) = (Path::new("checkpoints/r/weights/a.1"), Path::new("checkpoints/r/weights/b.1"));
            assert!(matches!(workspace.fetch(a).await, Err(StorageError::NotFound(_))));
            assert!(workspace.publish(&workspace.target(a), a).await.is_err(), "there is nothing yet");
            workspace.publish(&write(&workspace, a, "one"), a).await.unwrap();
            workspace.publish(&write(&workspace, b, "other"), b).await.unwrap();
            let elsewhere = tempfile::tempdir().unwrap();
            let other = Workspace::open(storage, elsewhere.path(), 1 << 20).unwrap();
            for (location, text) in [(a, "one"), (b, "other")] {
                let (here, there) = (workspace.fetch(location).await.unwrap(), other.fetch(location).await.unwrap());
                assert_eq!(fs::read_to_string(here.dir().join("file")).unwrap(), text);
                assert_eq!(fs::read_to_string(there.dir().join("file")).unwrap(), text);
                assert_eq!(other.present(location).unwrap().dir(), there.dir());
            }
        }
    }

    #[tokio::test]
    async fn copies_make_room_for_new_ones_unless_they_are_being_read() {
        let data = tempfile::tempdir().unwrap();
        let storage = Storage::in_memory();
        let writer = Workspace::open(storage.clone(), data.path(), 0).unwrap();
        let locations: Vec<PathBuf> = (0..4).map(|n| format!("checkpoints/r/weights/{n}").into()).collect();
        for location in &locations {
            let dir = write(&writer, location, "12345678");
            writer.publish(&dir, location).await.unwrap();
            assert!(!dir.exists(), "evicted");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let reader = Workspace::open(storage, elsewhere.path(), 16).unwrap();
        let held = reader.fetch(&locations[0]).await.unwrap();
        reader.fetch(&locations[1]).await.unwrap();
        reader.fetch(&locations[2]).await.unwrap();
        assert!(held.dir().exists() && reader.present(&locations[2]).is_some());
        assert!(reader.present(&locations[1]).is_none());
        drop(held);
        reader.present(&locations[0]).unwrap();
        reader.fetch(&locations[3]).await.unwrap();
        assert!(reader.present(&locations[2]).is_none(), "it was used before the first");
        assert!(reader.present(&locations[0]).is_some());
    }

    #[tokio::test]
    async fn a_folder_is_fetched_once_for_all_who_wait() {
        let data = tempfile::tempdir().unwrap();
        let storage = Storage::in_memory();
        let location = Path::new("checkpoints/r/weights/a");
        let writer = Workspace::open(storage.clone(), data.path(), 0).unwrap();
        writer.publish(&write(&writer, location, "x"), location).await.unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let reader = Workspace::open(storage, elsewhere.path(), 16).unwrap();
        let (one, two) = tokio::join!(reader.fetch(location), reader.fetch(location));
        assert_eq!(one.unwrap().dir(), two.unwrap().dir());
        assert_eq!(fs::read_dir(elsewhere.path().join(WORK)).unwrap().count(), 1);
    }
}
