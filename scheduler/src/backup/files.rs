//! The folder of a backup: written under a temporary name, then renamed; later verified.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use super::BackupError;
use super::digest::{FileDigest, digest};
use super::manifest::MANIFEST;

/// A backup that is being written. Dropping it before it is complete removes it.
pub(super) struct Partial {
    target: PathBuf,
    folder: PathBuf,
    complete: bool,
}

impl Partial {
    /// # Errors
    /// [`BackupError::Refused`] if the target is not empty, or if an interrupted backup is beside it.
    pub(super) fn create(target: &Path) -> Result<Self, BackupError> {
        match fs::read_dir(target).map(|mut entries| entries.next().is_some()) {
            Ok(true) => return Err(BackupError::Refused(format!("{} is not empty", target.display()))),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BackupError::file(target)(error)),
        }
        let Some(name) = target.file_name() else {
            return Err(BackupError::Refused(format!("{} is not the path of a folder", target.display())));
        };
        let mut partial = name.to_owned();
        partial.push(".partial");
        let folder = target.with_file_name(partial);
        match private_folder(&folder) {
            Ok(()) => Ok(Self { target: target.to_owned(), folder, complete: false }),
            Err(BackupError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                let text =
                    "already exists: another backup is writing it, or one was interrupted; in that case, remove it";
                Err(BackupError::Refused(format!("{} {text}", folder.display())))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file, after creating its folder.
    pub(super) fn place(&self, file: &str) -> Result<PathBuf, BackupError> {
        let path = self.folder.join(file);
        if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(BackupError::file(parent))?;
        }
        Ok(path)
    }

    /// Renames the backup, whose files are synced, to its final name.
    pub(super) fn complete(mut self) -> Result<(), BackupError> {
        sync_folders(&self.folder)?;
        fs::rename(&self.folder, &self.target).map_err(BackupError::file(&self.target))?;
        self.complete = true;
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync(parent.unwrap_or(Path::new(".")))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.complete
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            tracing::warn!(folder = %self.folder.display(), %error, "an incomplete backup remains: remove it");
        }
    }
}

fn private_folder(path: &Path) -> Result<(), BackupError> {
    DirBuilder::new().mode(0o700).create(path).map_err(BackupError::file(path))
}

fn sync_folders(folder: &Path) -> Result<(), BackupError> {
    for entry in fs::read_dir(folder).map_err(BackupError::file(folder))? {
        let path = entry.map_err(BackupError::file(folder))?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    sync(folder)
}

fn sync(folder: &Path) -> Result<(), BackupError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(BackupError::file(folder))
}

/// Checks that a folder contains exactly these files, unchanged, and a manifest.
pub(super) fn verify(backup: &Path, files: &BTreeMap<String, FileDigest>) -> Result<(), BackupError> {
    for (name, written) in files {
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(BackupError::Damaged(format!("{MANIFEST} names {name:?}")));
        }
        let found = match digest(&backup.join(name)) {
            Err(BackupError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(BackupError::Damaged(format!("{name} is missing")));
            }
            found => found?,
        };
        if found != *written {
            return Err(BackupError::Damaged(format!("{name} differs from the file that was written")));
        }
    }
    let mut strange = Vec::new();
    list(backup, Path::new(""), &mut strange)?;
    strange.retain(|name| name != MANIFEST && !files.contains_key(name));
    match strange.first() {
        Some(name) => Err(BackupError::Damaged(format!("{name} is not in {MANIFEST}"))),
        None => Ok(()),
    }
}

/// Lists the files below a folder, relative to `root`.
fn list(root: &Path, below: &Path, files: &mut Vec<String>) -> Result<(), BackupError> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).map_err(BackupError::file(&folder))? {
        let entry = entry.map_err(BackupError::file(&folder))?;
        let name = below.join(entry.file_name());
        if entry.path().is_dir() {
            list(root, &name, files)?;
        } else {
            files.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(())
}
