//! A rank's own copies of the folders that rank 0 reads.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The reason why a rank could not fetch a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchFailure {
    /// The folder is not in the storage.
    Missing,
    /// The storage or the rank's disk failed.
    Failed(String),
}

/// Called after a folder was fetched, or could not be fetched.
pub type FetchDone = Box<dyn FnOnce(Result<(), FetchFailure>) + Send>;

/// A rank's copies of the folders that rank 0 has copies of.
pub trait FolderCopies {
    /// Begins to fetch the folder at `location` in the storage, which rank 0 has at `dir`. Returns at once.
    fn fetch(&self, dir: &Path, location: &Path, done: FetchDone);

    /// Returns the path of the copy; `None` if the folder was not fetched and is common to all ranks.
    fn copy_of(&self, dir: &Path) -> Option<PathBuf>;

    /// Removes a copy, if there is one.
    fn remove(&self, dir: &Path);
}
