//! Payloads and results that are too large for a row: files named by rows.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::Error;

/// Larger bytes go to a file.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// Bytes as a row holds them.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// In the row.
    Inline(Bytes),
    /// In a file of this name.
    File(String),
}

impl Stored {
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

/// The folder of the files.
#[derive(Clone)]
pub(crate) struct Blobs {
    dir: Arc<PathBuf>,
}

impl Blobs {
    /// Opens the folder, creating it when it is missing.
    pub(crate) async fn open(dir: PathBuf) -> Result<Self, Error> {
        let blobs = Self { dir: Arc::new(dir) };
        blobs.blocking("open the blob folder", |dir| fs::create_dir_all(dir)).await?;
        Ok(blobs)
    }

    /// Stores bytes: large ones are written and synced to the file `name` before this returns.
    pub(crate) async fn put(&self, name: String, bytes: &Bytes) -> Result<Stored, Error> {
        if bytes.len() <= INLINE_LIMIT {
            return Ok(Stored::Inline(bytes.clone()));
        }
        let (file, content) = (name.clone(), bytes.clone());
        self.blocking("write a blob", move |dir| write_synced(dir, &file, &content)).await?;
        Ok(Stored::File(name))
    }

    /// The bytes.
    pub(crate) async fn get(&self, stored: Stored) -> Result<Bytes, Error> {
        match stored {
            Stored::Inline(bytes) => Ok(bytes),
            Stored::File(name) => {
                self.blocking("read a blob", move |dir| fs::read(dir.join(name))).await.map(Bytes::from)
            }
        }
    }

    /// Removes files that no row names any more. A failure costs disk only and is logged.
    pub(crate) async fn remove(&self, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let removed = self.blocking("remove blobs", move |dir| {
            names.iter().try_for_each(|name| match fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            })
        });
        // Already logged, and the next start removes what is left.
        let _ = removed.await;
    }

    /// Removes all files but those that rows name: what a crash left between file and row.
    pub(crate) async fn keep_only(&self, named: HashSet<String>) -> Result<(), Error> {
        self.blocking("tidy the blob folder", move |dir| {
            for entry in fs::read_dir(dir)? {
                let entry = entry?;
                let known = entry.file_name().to_str().is_some_and(|name| named.contains(name));
                if !known && entry.file_type()?.is_file() {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let dir = Arc::clone(&self.dir);
        match tokio::task::spawn_blocking(move || work(&dir)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Error::store(doing, error)),
            Err(error) => Err(Error::store(doing, error)),
        }
    }
}

fn write_synced(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(dir.join(name))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    // The name is durable only once the folder is.
    File::open(dir)?.sync_all()
}
