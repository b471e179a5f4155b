//! Payloads and results that are too large for a row: files named by rows.

use bytes::Bytes;

use super::backup_holds::is_held;
use super::db::{Pool, RowScope};
use crate::storage::{Area, Older, Storage, StorageError};
use crate::{Error, Timestamp};

/// Larger bytes go to a file.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// Where the files are in the storage.
pub(crate) const AREA: Area = Area { root: "blobs", depth: 1 };

/// Bytes as a row holds them.
#[derive(Clone, Debug)]
pub(crate) enum StoredBytes {
    /// In the row.
    Inline(Bytes),
    /// In a file of this name.
    File(String),
}

impl StoredBytes {
    /// Bytes that are small enough for a row.
    pub(crate) fn in_row(bytes: &Bytes) -> Option<Self> {
        (bytes.len() <= INLINE_LIMIT).then(|| Self::Inline(bytes.clone()))
    }

    /// The bytes, when they are in the row.
    pub(crate) fn inline(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::File(_) => None,
        }
    }

    /// The file's name, when they are in a file.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::File(name) => Some(name),
        }
    }

    /// From a row's two columns; `None` when the bytes were dropped.
    pub(crate) fn from_columns(inline: Option<Vec<u8>>, file: Option<String>) -> Option<Self> {
        inline.map(|bytes| Self::Inline(bytes.into())).or_else(|| file.map(Self::File))
    }
}

/// The files.
#[derive(Clone)]
pub(crate) struct Blobs {
    storage: Storage,
    /// To look for backups before something is removed.
    readers: Pool,
}

impl Blobs {
    /// Makes the storage ready for files.
    pub(crate) async fn open(storage: Storage, readers: Pool) -> Result<Self, Error> {
        storage.prepare(AREA.root).await.map_err(failed("open the blob storage"))?;
        Ok(Self { storage, readers })
    }

    /// Stores bytes: large ones are written and synced to the file `name` before this returns.
    pub(crate) async fn put(&self, name: String, bytes: &Bytes) -> Result<StoredBytes, Error> {
        if let Some(small) = StoredBytes::in_row(bytes) {
            return Ok(small);
        }
        self.storage.put(&path(&name), bytes.clone()).await.map_err(failed("write a blob"))?;
        Ok(StoredBytes::File(name))
    }

    /// The bytes.
    pub(crate) async fn get(&self, stored: StoredBytes) -> Result<Bytes, Error> {
        match stored {
            StoredBytes::Inline(bytes) => Ok(bytes),
            StoredBytes::File(name) => self.storage.get(&path(&name)).await.map_err(failed("read a blob")),
        }
    }

    /// Removes files that no row names any more. A failure costs space only and is logged: garbage
    /// collection removes what is left.
    pub(crate) async fn remove(&self, names: Vec<String>) {
        if names.is_empty() || !self.may_remove().await {
            return;
        }
        if let Err(error) = self.storage.remove(names.iter().map(|name| path(name)).collect()).await {
            tracing::warn!(%error, "blobs could not be removed; garbage collection retries");
        }
    }

    /// Whether objects that no row names any more may be removed from the storage; otherwise a backup may need them, and
    /// garbage collection removes them later.
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

    /// Names of files that were written before a moment, a part of them at a time.
    pub(crate) async fn older(
        &self,
        before: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let Older { entries, next } =
            self.storage.older(AREA, before, after, limit).await.map_err(failed("list the blobs"))?;
        let name = |entry: std::path::PathBuf| Some(entry.file_name()?.to_str()?.to_owned());
        Ok((entries.into_iter().filter_map(name).collect(), next))
    }
}

fn path(name: &str) -> String {
    format!("{}/{name}", AREA.root)
}

/// A storage that fails may be back soon, with all that it holds.
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
