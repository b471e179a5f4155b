//! Errors of files, with their paths.

use std::path::Path;

use crate::config::LoadError;

/// A file that cannot be read.
pub(super) fn io(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io { path: path.display().to_string(), source }
}

/// A file with an unexpected form.
pub(super) fn malformed(path: &Path, reason: impl Into<String>) -> LoadError {
    LoadError::Malformed { path: path.display().to_string(), reason: reason.into() }
}
