//! Errors of the storage, and the bytes that it reads.

use bytes::Bytes;
use futures::stream::BoxStream;

/// The bytes of a file in pieces.
pub type Pieces = BoxStream<'static, Result<Bytes, StorageError>>;

/// A storage that can't be used, or that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The URL or the settings of the storage are wrong.
    #[error("{0}")]
    Settings(String),
    /// Nothing is stored under this name.
    #[error("{0} is not in the storage")]
    NotFound(String),
    /// The disk of the storage is full.
    #[error("the storage has no space to {doing} {name}")]
    NoSpace {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path of the file or folder.
        name: String,
    },
    /// The storage could not be reached, or refused the operation.
    #[error("the storage failed to {doing} {name}: {detail}")]
    Failed {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path of the file or folder.
        name: String,
        /// The error that caused this one.
        detail: String,
    },
}

impl StorageError {
    pub(crate) fn failed(doing: &'static str, name: impl ToString, detail: impl ToString) -> Self {
        Self::Failed { doing, name: name.to_string(), detail: detail.to_string() }
    }
}
