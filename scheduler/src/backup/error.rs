//! Errors of backups and restorations.

use std::io;
use std::path::{Path, PathBuf};

use trainyard_storage::StorageError;

use crate::Error;

/// A backup that could not be taken, checked or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file on this machine can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause reported by the operating system.
        source: io::Error,
    },
    /// The requested operation would destroy data, or its parts do not fit together.
    #[error("{0}")]
    Refused(String),
    /// The backup differs from the one that was written.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// The storage lacks objects that the database names.
    #[error(
        "the storage lacks {} objects that the database names, {}: use --allow-missing to back up the rest",
        .0.len(),
        .0.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ")
    )]
    Missing(Vec<String>),
    /// The hold expired: objects that the backup still had to copy may have been removed.
    #[error("the database could not be reached for too long to keep objects in the storage: try again")]
    HoldLost,
    /// The caller cancelled the backup.
    #[error("interrupted: nothing was left behind")]
    Interrupted,
    /// An operation of the storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An operation of the database failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl BackupError {
    /// Converts an error of a file operation.
    pub(super) fn file(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path: path.clone(), source }
    }
}
