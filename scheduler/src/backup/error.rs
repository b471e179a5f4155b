//! How a backup or a restoration fails.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, StorageError};

/// A backup that could not be taken, checked or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file on this machine can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was asked for would damage something, or does not fit together.
    #[error("{0}")]
    Refused(String),
    /// The backup is not what was written.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// The database names what the storage does not have.
    #[error(
        "the storage lacks {} objects that the database names, {}: back up what there is with --allow-missing",
        .0.len(),
        .0.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ")
    )]
    Missing(Vec<String>),
    /// The hold expired: what the backup still had to copy may have been removed.
    #[error("the database could not be reached for too long to keep objects in the storage: try again")]
    HoldLost,
    /// The caller wants it no longer.
    #[error("interrupted: nothing was left behind")]
    Interrupted,
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl BackupError {
    /// A failure of a file.
    pub(super) fn file(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path: path.clone(), source }
    }
}
