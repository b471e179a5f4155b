//! The working folder of a measurement.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Folder for a tiny model and the data of a measurement: either the folder asked for, which is kept, or a temporary
/// one, which is removed with this value.
pub(super) struct BenchFolder {
    pub(super) path: PathBuf,
    temporary: bool,
}

impl BenchFolder {
    /// Opens the folder. Data of an earlier measurement, in its subfolder `data`, is removed.
    pub(super) fn new(asked: Option<&Path>, data: &str) -> Result<Self, Box<dyn Error>> {
        let temporary = || env::temp_dir().join(format!("trainyard-bench-{}", process::id()));
        let path = asked.map_or_else(temporary, Path::to_path_buf);
        fs::create_dir_all(&path)?;
        let path = fs::canonicalize(path)?;
        // The server would first recover the data of the last measurement.
        match fs::remove_dir_all(path.join(data)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(Self { path, temporary: asked.is_none() }),
        }
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        if self.temporary {
            // A leftover in the temporary folder does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
