//! Payloads and results that are too large for a row: files that rows name.

use bytes::Bytes;
use trainyard_storage::{Area, Older, Storage, StorageError};

use super::backup_holds::is_held;
use super::db::{Pool, RowScope};
use crate::{Error, Timestamp};

/// Largest bytes in a row; larger ones go to a file.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// Area of the storage for the files.
pub(crate) const AREA: Area = Area { root: "blobs", depth: 1 };

/// Bytes of a payload or result in the store.
#[derive(Clone, Debug)]
pub(crate) enum StoredBytes {
    /// The row contains the bytes.
    Inline(Bytes),
    /// A file of this name contains the bytes.
    File(String),
}

impl StoredBytes {
    /// Returns the bytes for a row, if they are small enough.
    pub(crate) fn in_row(bytes: &Bytes) -> Option<Self> {
        (bytes.len() <= INLINE_LIMIT).then(|| Self::Inline(bytes.clone()))
    }

    /// Returns the bytes, if the row contains them.
    pub(crate) fn inline(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::File(_) => None,
        }
    }

    /// Returns the file's name, if a file contains the bytes.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::File(name) => Some(name),
        }
    }

    /// Reads the two columns of a row; `None` if the bytes were dropped.
    pub(crate) fn from_columns(inline: Option<Vec<u8>>, file: Option<String>) -> Option<Self> {
        inline.map(|bytes| Self::Inline(bytes.into())).or_else(|| file.map(Self::File))
    }
}

/// Files of payloads and results.
#[derive(Clone)]
pub(crate) struct Blobs {
    storage: Storage,
    /// Connections with which backups are detected before a removal.
    readers: Pool,
}

impl Blobs {
    /// Prepares the storage for files.
    pub(crate) async fn open(storage: Storage, readers: Pool) -> Result<Self, Error> {
        storage.prepare(AREA.root).await.map_err(failed("open the blob storage"))?;
        Ok(Self { storage, readers })
    }

    /// Stores bytes. Large ones are written and synced to the file `name` before this returns.
    pub(crate) async fn put(&self, name: String, bytes: &Bytes) -> Result<StoredBytes, Error> {
        if let Some(small) = StoredBytes::in_row(bytes) {
            return Ok(small);
        }
        self.storage.put(&path(&name), bytes.clone()).await.map_err(failed("write a blob"))?;
        Ok(StoredBytes::File(name))
    }

    /// Reads the stored bytes back.
    pub(crate) async fn get(&self, stored: StoredBytes) -> Result<Bytes, Error> {
        match stored {
            StoredBytes::Inline(bytes) => Ok(bytes),
            StoredBytes::File(name) => self.storage.get(&path(&name)).await.map_err(failed("read a blob")),
        }
    }

    /// Removes files that rows have ceased to name. A failure only costs space and is logged: garbage collection
    /// removes the rest.
    pub(crate) async fn remove(&self, names: Vec<String>) {
        if names.is_empty() || !self.may_remove().await {
            return;
        }
        if let Err(error) = self.storage.remove(names.iter().map(|name| path(name)).collect()).await {
            tracing::warn!(%error, "blobs could not be removed; garbage collection retries");
        }
    }

    /// Returns whether unnamed objects may be removed from the storage. Otherwise a backup may need them, and garbage
    /// collection removes them later.
    pub(crate) async fn may_remove(&self) -> bool {
        let held = async {
            let mut conn = self.readers.acquire(&RowScope::System).await.map_err(super::failed("look for a hold"))?;
            is_held(&mut conn).await
        };
        match held.await {
            Ok(held) => !held,
            Err(error) => {
                tracing::warn!(%error, "objects could not be removed; garbage collection retries");
                false
            }
        }
    }

    /// Returns names of files that were written before a given time, some of them at a time.
    pub(crate) async fn older(
        &self,
        before: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let Older { entries, next } =
            self.storage.older(AREA, before.system_time(), after, limit).await.map_err(failed("list the blobs"))?;
        let name = |entry: std::path::PathBuf| Some(entry.file_name()?.to_str()?.to_owned());
        Ok((entries.into_iter().filter_map(name).collect(), next))
    }
}

fn path(name: &str) -> String {
    format!("{}/{name}", AREA.root)
}

/// Logs a failure of the storage, which may be temporary and lose nothing.
fn failed(doing: &'static str) -> impl Fn(StorageError) -> Error {
    move |error| match error {
        StorageError::Failed { .. } => {
            tracing::warn!(doing, %error, "the storage failed");
            Error::Unavailable(doing)
        }
        error @ StorageError::NoSpace { .. } => Error::no_space(doing, error),
        error => Error::store(doing, error),
    }
}
