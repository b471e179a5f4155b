//! What runs were loaded from. A restart executes a load again, and by then the checkpoint may be deleted or
//! overwritten; so each load keeps its files, as hard links, until its run is over. Saved files never change in
//! place: saves replace whole folders.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use trainyard_protocol::{OpError, RunId};

use crate::codec::{CHECKPOINTS, folder_name};

/// Beside the runs' folders, and so on the same file system; no run's folder starts with a dot.
const LOADS: &str = ".loads";

/// Keeps the files of a checkpoint for the load that has this place in its run. Returns where they are.
///
/// # Errors
/// The user's when the checkpoint is gone, the server's when its files can't be kept.
pub(super) fn keep(data_dir: &Path, run: &RunId, seq_id: i64, checkpoint: &Path) -> Result<PathBuf, OpError> {
    let kept = kept(data_dir, run, seq_id);
    match link_folder(checkpoint, &kept) {
        Ok(()) => Ok(kept),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpError::user("path: the checkpoint does not exist any more"))
        }
        Err(error) => {
            tracing::error!(%error, dir = %checkpoint.display(), "a checkpoint's files cannot be kept");
            Err(OpError::server("the checkpoint's files cannot be kept; the server's log has the details"))
        }
    }
}

/// Where the files of an earlier [`keep`] are.
pub(super) fn kept(data_dir: &Path, run: &RunId, seq_id: i64) -> PathBuf {
    of_run(data_dir, run).join(seq_id.to_string())
}

/// Drops what was kept for a run that is over.
pub(super) fn forget(data_dir: &Path, run: &RunId) {
    match fs::remove_dir_all(of_run(data_dir, run)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, %run, "the files that a run was loaded from remain");
        }
        _ => {}
    }
}

fn of_run(data_dir: &Path, run: &RunId) -> PathBuf {
    data_dir.join(CHECKPOINTS).join(LOADS).join(folder_name(run))
}

fn link_folder(from: &Path, to: &Path) -> io::Result<()> {
    let entries = fs::read_dir(from)?;
    // What an interrupted attempt left.
    if to.try_exists()? {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        fs::hard_link(entry.path(), &target).or_else(|_| copy(&entry.path(), &target))?;
    }
    for dir in to.ancestors().take(4) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// For file systems without hard links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn kept_files_outlive_the_checkpoint_and_go_with_the_run() {
        let data = tempfile::tempdir().unwrap();
        let (run, checkpoint) = (RunId::new("s:train:1"), data.path().join("checkpoints/x/weights/a"));
        assert_eq!(keep(data.path(), &run, 0, &checkpoint).unwrap_err().category, trainyard_protocol::Category::User);
        fs::create_dir_all(&checkpoint).unwrap();
        fs::write(checkpoint.join("file"), b"first").unwrap();
        for _ in 0..2 {
            keep(data.path(), &run, 0, &checkpoint).unwrap();
        }
        fs::remove_dir_all(&checkpoint).unwrap();
        let kept = kept(data.path(), &run, 0);
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"first");
        forget(data.path(), &run);
        forget(data.path(), &run);
        assert!(!kept.exists());
    }
}
