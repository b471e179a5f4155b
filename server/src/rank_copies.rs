//! Copies of a bucket's folders on the ranks that follow rank 0, where ranks are processes: each has its own on its
//! machine.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use trainyard_gpu_runtime::{FetchDone, FetchFailure, FolderCopies};
use trainyard_storage::{Storage, StorageError};

use crate::workspace;

/// The copies of a rank other than 0, in a folder of its own, since ranks of one machine may have the same data
/// folder. Rank 0 decides what is fetched and removed.
pub struct RankCopies {
    storage: Storage,
    work: PathBuf,
    runtime: Handle,
    /// The copies by the folder that rank 0 has.
    copies: Arc<Mutex<BTreeMap<PathBuf, PathBuf>>>,
}

impl RankCopies {
    /// Opens the copies in the data folder, removes those of an earlier process, and fetches with `runtime`.
    ///
    /// # Errors
    /// Fails if old copies can't be removed.
    pub fn open(storage: Storage, data_dir: &Path, rank: usize, runtime: Handle) -> io::Result<Self> {
        let work = workspace::emptied(data_dir.join(format!("work-rank-{rank}")))?;
        Ok(Self { storage, work, runtime, copies: Arc::default() })
    }
}

impl FolderCopies for RankCopies {
    fn fetch(&self, dir: &Path, location: &Path, done: FetchDone) {
        let Some(name) = dir.file_name() else {
            return done(Err(FetchFailure::Failed(format!("{} has no name", dir.display()))));
        };
        let (storage, copies) = (self.storage.clone(), Arc::clone(&self.copies));
        let (dir, location, copy) = (dir.to_owned(), location.to_owned(), self.work.join(name));
        self.runtime.spawn(async move {
            let fetched = workspace::fetch_to(&storage, &location, &copy).await;
            done(match fetched {
                Ok(_) => {
                    lock(&copies).insert(dir, copy);
                    Ok(())
                }
                Err(StorageError::NotFound(_)) => Err(FetchFailure::Missing),
                Err(error) => Err(FetchFailure::Failed(error.to_string())),
            });
        });
    }

    fn copy_of(&self, dir: &Path) -> Option<PathBuf> {
        lock(&self.copies).get(dir).cloned()
    }

    fn remove(&self, dir: &Path) {
        // What could not be fetched left nothing.
        if let Some(copy) = lock(&self.copies).remove(dir) {
            workspace::remove(&copy);
        }
    }
}

fn lock(copies: &Mutex<BTreeMap<PathBuf, PathBuf>>) -> MutexGuard<'_, BTreeMap<PathBuf, PathBuf>> {
    copies.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;

    use super::*;
    use crate::workspace::{OtherRanks, Workspace};

    /// A rank of this process.
    struct Neighbour(RankCopies);

    impl OtherRanks for Neighbour {
        fn fetch(&self, dir: &Path, location: &Path, done: FetchDone) {
            self.0.fetch(dir, location, done);
        }

        fn remove(&self, dir: &Path) {
            self.0.remove(dir);
        }
    }

    /// The folders of ranks 0 and 1, with the same data folder, and separate storages when `apart`.
    fn two(data: &Path, storage: &Storage, apart: bool, capacity: u64) -> (Workspace, Arc<Neighbour>) {
        let theirs = if apart { Storage::in_memory() } else { storage.clone() };
        let other = Arc::new(Neighbour(RankCopies::open(theirs, data, 1, Handle::current()).unwrap()));
        let first = Workspace::open(storage.clone(), data, capacity).unwrap();
        (first.with_ranks(other.clone()), other)
    }

    async fn publish(workspace: &Workspace, location: &Path, text: &str) -> PathBuf {
        let dir = workspace.target(location);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("file"), text).unwrap();
        workspace.publish(&dir, location).await.unwrap();
        dir
    }

    fn text(dir: &Path) -> String {
        fs::read_to_string(dir.join("file")).unwrap()
    }

    #[tokio::test]
    async fn all_ranks_have_a_folder_before_it_is_read() {
        let data = tempfile::tempdir().unwrap();
        let (first, other) = two(data.path(), &Storage::in_memory(), false, 1 << 20);
        let location = Path::new("checkpoints/r/weights/a.1");
        let written = publish(&first, location, "one").await;
        // Rank 0 wrote it, so only rank 0 has it.
        assert!(first.present(location).is_none());
        let guard = first.fetch(location).await.unwrap();
        assert_eq!(guard.dir(), written);
        let copy = other.0.copy_of(&written).unwrap();
        assert_ne!(copy, written);
        assert_eq!((text(guard.dir()), text(&copy)), ("one".to_owned(), "one".to_owned()));
        assert_eq!(first.present(location).unwrap().dir(), written);
    }

    #[tokio::test]
    async fn what_rank_0_evicts_is_removed_from_all() {
        let data = tempfile::tempdir().unwrap();
        let storage = Storage::in_memory();
        let elsewhere = tempfile::tempdir().unwrap();
        let writer = Workspace::open(storage.clone(), elsewhere.path(), 0).unwrap();
        let (first, other) = two(data.path(), &storage, false, 8);
        let [a, b] = ["checkpoints/r/weights/a", "checkpoints/r/weights/b"].map(Path::new);
        for location in [a, b] {
            publish(&writer, location, "12345678").await;
        }
        let copy = {
            let guard = first.fetch(a).await.unwrap();
            other.0.copy_of(guard.dir()).unwrap()
        };
        assert!(copy.exists());
        let second = first.fetch(b).await.unwrap();
        assert!(!copy.exists() && other.0.copy_of(second.dir()).unwrap().exists());
        assert!(first.present(a).is_none());
    }

    #[tokio::test]
    async fn a_rank_that_cannot_fetch_fails_the_fetch_of_all() {
        let data = tempfile::tempdir().unwrap();
        let (first, other) = two(data.path(), &Storage::in_memory(), true, 1 << 20);
        let (a, b) = (Path::new("checkpoints/r/weights/a"), Path::new("checkpoints/r/weights/b"));
        let written = publish(&first, a, "one").await;
        assert!(matches!(first.fetch(a).await, Err(StorageError::NotFound(_))));
        assert!(first.present(a).is_none() && other.0.copy_of(&written).is_none());
        assert!(matches!(first.fetch(b).await, Err(StorageError::NotFound(_))));
        // A file where the copies are to be.
        let work = data.path().join("work-rank-1");
        fs::remove_dir_all(&work).unwrap();
        fs::write(work, "").unwrap();
        let error = first.fetch(a).await.unwrap_err().to_string();
        assert!(error.starts_with("the storage failed to fetch checkpoints/r/weights/a"), "{error}");
    }
}
