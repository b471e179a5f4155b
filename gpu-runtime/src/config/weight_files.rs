//! Identity of files with weights.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::LoadError;

/// Identifies files with weights under all of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightFiles(Vec<FileId>);

/// A file's device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileId(u64, u64);

impl WeightFiles {
    /// Returns the identity of the files at these paths.
    ///
    /// # Errors
    /// Fails if a file does not exist.
    pub fn at(paths: &[PathBuf]) -> Result<Self, LoadError> {
        let id = |path: &PathBuf| match std::fs::metadata(path) {
            Ok(metadata) => Ok(FileId(metadata.dev(), metadata.ino())),
            Err(source) => Err(LoadError::Io { path: path.display().to_string(), source }),
        };
        let mut ids: Vec<FileId> = paths.iter().map(id).collect::<Result<_, _>>()?;
        ids.sort_unstable();
        Ok(Self(ids))
    }
}
