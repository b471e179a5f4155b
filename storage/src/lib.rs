//! The storage of bytes that are too large for a row: payloads and results, checkpoints, snapshots of runs. A folder
//! that all processes share, or a bucket of an S3-compatible service.
//!
//! Every object has a name relative to the storage's root, e.g. `blobs/<file>`, or, for a folder of files,
//! `checkpoints/<run>/weights/<save>`. Objects never change: each write has a name of its own, so a row always names
//! exactly the object that was written for it. Objects that no row names are garbage, which is collected by age
//! ([`Storage::older`]).

mod error;
mod folder;
mod listing;
mod objects;
#[cfg(test)]
mod tests;
mod times;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use tokio::time::Instant;

pub use self::error::{Pieces, StorageError};
use self::folder::Folder;
pub use self::listing::{Area, Older};
use self::objects::Objects;
use self::times::Operation;
pub use self::times::StorageTimes;

/// The storage. Cheap to clone; all clones are one storage.
#[derive(Clone, Debug)]
pub struct Storage {
    backend: Backend,
    times: StorageTimes,
}

impl From<Backend> for Storage {
    fn from(backend: Backend) -> Self {
        Self { backend, times: StorageTimes::default() }
    }
}

#[derive(Clone, Debug)]
enum Backend {
    Folder(Folder),
    Objects(Objects),
}

impl Storage {
    /// Returns the storage in a folder of this machine.
    pub fn folder(root: impl Into<PathBuf>) -> Self {
        Backend::Folder(Folder::new(root.into())).into()
    }

    /// Opens a storage by a folder's path, or by `s3://BUCKET/PREFIX` with region, credentials and endpoint from the
    /// `AWS_*` variables.
    ///
    /// # Errors
    /// [`StorageError::Settings`] for another scheme, or if variables are missing.
    pub fn open(url: &str) -> Result<Self, StorageError> {
        if url.starts_with("s3://") {
            return Ok(Backend::Objects(Objects::s3(url)?).into());
        }
        match url.split_once("://") {
            None if !url.is_empty() => Ok(Self::folder(url)),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::folder(path)),
            _ => Err(StorageError::Settings(format!(
                "{url:?} is not a storage: expected a folder or s3://BUCKET/PREFIX"
            ))),
        }
    }

    /// Returns a storage in the memory of this process, for tests of code that uses a bucket.
    pub fn in_memory() -> Self {
        Backend::Objects(Objects::new(InMemory::new(), "")).into()
    }

    /// Returns a storage in an object store of the caller, for tests of slow or failing stores.
    pub fn of_store(store: impl object_store::ObjectStore) -> Self {
        Backend::Objects(Objects::new(store, "")).into()
    }

    /// Returns the histograms of the storage's requests.
    pub fn times(&self) -> &StorageTimes {
        &self.times
    }

    /// Prepares a part of the storage: creates its folder, or makes a small request to the bucket, so that wrong settings
    /// are found at once.
    pub async fn prepare(&self, root: &str) -> Result<(), StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.create(root).await,
                Backend::Objects(objects) => objects.check(root).await,
            }
        };
        self.times.of(Operation::List, request).await
    }

    /// Returns the path of a folder of the storage on this machine, whether or not it exists. `None` if the storage is not a folder.
    pub fn local(&self, location: &Path) -> Option<PathBuf> {
        match &self.backend {
            Backend::Folder(folder) => Some(folder.path(location)),
            Backend::Objects(_) => None,
        }
    }

    /// Stores bytes under a name in a prepared part, durably before this returns.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.put(name, bytes).await,
                Backend::Objects(objects) => objects.put(name, bytes).await,
            }
        };
        self.times.of(Operation::Put, request).await
    }

    /// Returns the bytes under a name.
    pub async fn get(&self, name: &str) -> Result<Bytes, StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.get(name).await,
                Backend::Objects(objects) => objects.get(name).await,
            }
        };
        self.times.of(Operation::Get, request).await
    }

    /// Removes the objects with these names; missing ones are ignored.
    pub async fn remove(&self, names: Vec<String>) -> Result<(), StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.remove(names).await,
                Backend::Objects(objects) => objects.remove(names).await,
            }
        };
        self.times.of(Operation::Delete, request).await
    }

    /// Returns the files of a folder with their sizes in bytes.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] if the folder does not exist.
    pub async fn files(&self, location: &Path) -> Result<BTreeMap<String, u64>, StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.files(location).await,
                Backend::Objects(objects) => objects.files(location).await,
            }
        };
        self.times.of(Operation::List, request).await
    }

    /// Returns the size and the bytes of a file of a folder. The name must be one that [`Self::files`] returned.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] if the file does not exist.
    pub async fn read(&self, location: &Path, file: &str) -> Result<(u64, Pieces), StorageError> {
        let (started, times) = (Instant::now(), self.times.clone());
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.read(location, file).await,
                Backend::Objects(objects) => objects.read(location, file).await,
            }
        };
        let (size, pieces) = self.times.of(Operation::Get, request).await?;
        Ok((size, pieces.inspect_err(move |error| times.note(Operation::Get, started, Some(error))).boxed()))
    }

    /// Publishes a complete folder of this machine to the storage. A folder at the path of [`Self::local`] is already
    /// in place; the files of others are copied.
    pub async fn publish(&self, from: &Path, location: &Path) -> Result<(), StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.publish(from, location).await,
                Backend::Objects(objects) => objects.publish(from, location).await,
            }
        };
        self.times.of(Operation::Put, request).await
    }

    /// Copies a folder's files into an existing, empty folder on this machine. Returns their total bytes.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] if the folder does not exist.
    pub async fn fetch(&self, location: &Path, to: &Path) -> Result<u64, StorageError> {
        let mut total = 0;
        for (file, size) in self.files(location).await? {
            let (_, pieces) = self.read(location, &file).await?;
            total += folder::write_pieces(&to.join(&file), pieces, size).await?;
        }
        Ok(total)
    }

    /// Removes a folder, if it exists.
    pub async fn remove_folder(&self, location: &Path) -> Result<(), StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.remove_folder(location).await,
                Backend::Objects(objects) => objects.remove_folder(location).await,
            }
        };
        self.times.of(Operation::Delete, request).await
    }

    /// Lists the entries of an area that were last changed before a moment. One call reads about `limit` entries, after
    /// those that an earlier call read.
    pub async fn older(
        &self,
        area: Area,
        before: SystemTime,
        after: Option<String>,
        limit: usize,
    ) -> Result<Older, StorageError> {
        let request = async {
            match &self.backend {
                Backend::Folder(folder) => folder.older(area, before, after, limit).await,
                Backend::Objects(objects) => objects.older(area, before, after, limit).await,
            }
        };
        self.times.of(Operation::List, request).await
    }
}
