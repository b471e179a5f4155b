//! The folder that what is measured works in.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Where a tiny model and the data of what is measured lie: a folder that was asked for, which stays, or a temporary
/// one, which goes with this value.
pub(super) struct BenchFolder {
    pub(super) path: PathBuf,
    temporary: bool,
}

impl BenchFolder {
    /// Data of an earlier measurement, in the folder `data` of this one, is removed.
    pub(super) fn new(asked: Option<&Path>, data: &str) -> Result<Self, Box<dyn Error>> {
        let temporary = || env::temp_dir().join(format!("trainyard-bench-{}", process::id()));
        let path = asked.map_or_else(temporary, Path::to_path_buf);
        fs::create_dir_all(&path)?;
        let path = fs::canonicalize(path)?;
        // The last measurement's data would be recovered first.
        match fs::remove_dir_all(path.join(data)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(Self { path, temporary: asked.is_none() }),
        }
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        if self.temporary {
            // A leftover in the temporary folder is no reason to fail.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
