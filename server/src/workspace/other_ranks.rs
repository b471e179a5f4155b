//! Ranks that are other processes, and read the same folders from copies of their own.

use std::path::Path;

use tokio::sync::oneshot;
use trainyard_gpu_runtime::{FetchDone, FetchFailure, RankFolders};
use trainyard_storage::StorageError;

/// The other ranks, as rank 0 sees them.
pub trait OtherRanks: Send + Sync {
    /// Makes all other ranks fetch the folder at `location` in the storage, which this rank has at `dir`.
    fn fetch(&self, dir: &Path, location: &Path, done: FetchDone);

    /// Makes the other ranks remove their copies.
    fn remove(&self, dir: &Path);
}

impl OtherRanks for RankFolders {
    fn fetch(&self, dir: &Path, location: &Path, done: FetchDone) {
        Self::fetch(self, dir, location, done);
    }

    fn remove(&self, dir: &Path) {
        Self::remove(self, dir);
    }
}

/// Waits until all other ranks have a folder.
///
/// # Errors
/// The same errors as a fetch on this rank.
pub(super) async fn fetch_on(ranks: &dyn OtherRanks, dir: &Path, location: &Path) -> Result<(), StorageError> {
    let (done, fetched) = oneshot::channel();
    // The waiting caller may have given up.
    ranks.fetch(dir, location, Box::new(move |result| drop(done.send(result))));
    let name = location.display().to_string();
    match fetched.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(FetchFailure::Missing)) => Err(StorageError::NotFound(name)),
        Ok(Err(FetchFailure::Failed(detail))) => Err(StorageError::Failed { doing: "fetch", name, detail }),
        Err(_) => Err(StorageError::Failed { doing: "fetch", name, detail: "the other ranks have ended".to_owned() }),
    }
}
