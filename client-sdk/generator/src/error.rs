//! Errors, and the reading of files.

use std::path::{Path, PathBuf};

/// Reason why nothing could be generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause reported by the operating system.
        source: std::io::Error,
    },
    /// The description is not JSON.
    #[error("openapi/openapi.json: {0}")]
    Json(#[from] serde_json::Error),
    /// The description contains something that the generator does not support.
    #[error("{0}")]
    Unsupported(String),
    /// Rust code can't be parsed.
    #[error("{0}")]
    Syntax(#[from] syn::Error),
}

/// Reads a text file.
///
/// # Errors
///
/// The error contains the file's path.
pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.into(), source })
}
