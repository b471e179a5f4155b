//! Atomic writes of folders.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use trainyard_protocol::{OpError, SaveTarget, SavedFiles};

use super::{file_name, unwritable};

/// Ends the name of a folder that is being written.
const SAVING: &str = ".saving";
/// Ends the name of a folder that is being replaced.
const REPLACED: &str = ".replaced";

/// Writes a folder: `fill` writes its files into the directory that it is given.
///
/// That directory is a hidden sibling of the target, `.NAME.saving`. When `fill` is done every file is synced, then the
/// directory, then it is renamed to `NAME` and the parent is synced. To overwrite, the old folder is first
/// renamed to `.NAME.replaced`, and removed once the new one is in place: a crash between the two renames leaves
/// both under hidden names, and the next write to the same target restores the old one. If anything fails the target is as it was.
///
/// One writer at a time may write to a target. A target that exists, unless it is to be overwritten, is the
/// client's error.
pub(crate) fn write_atomically(
    target: &SaveTarget,
    fill: impl FnOnce(&Path) -> Result<(), OpError>,
) -> Result<SavedFiles, OpError> {
    let paths = SavePaths::of(&target.dir).map_err(|error| unwritable(&target.dir, &error))?;
    create_synced(&paths.parent).map_err(|error| unwritable(&paths.parent, &error))?;
    paths.restore().map_err(|error| unwritable(&paths.target, &error))?;
    if !target.overwrite && exists(&paths.target) {
        return Err(OpError::user(format!("path: a checkpoint named {:?} exists already", file_name(&paths.target))));
    }
    let saving = UnfinishedDir::create(&paths.saving).map_err(|error| unwritable(&paths.saving, &error))?;
    fill(&paths.saving)?;
    let size_bytes = sync_tree(&paths.saving)
        .and_then(|size| paths.publish().map(|()| size))
        .map_err(|error| unwritable(&paths.target, &error))?;
    saving.finished();
    Ok(SavedFiles { dir: target.dir.clone(), size_bytes })
}

/// The folders of a write.
struct SavePaths {
    parent: PathBuf,
    target: PathBuf,
    saving: PathBuf,
    replaced: PathBuf,
}

impl SavePaths {
    fn of(target: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a folder needs a name"));
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let hidden = |suffix: &str| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(suffix);
            parent.join(hidden)
        };
        Ok(Self {
            parent: parent.to_owned(),
            target: target.to_owned(),
            saving: hidden(SAVING),
            replaced: hidden(REPLACED),
        })
    }

    /// Completes a replacement that a crash interrupted: restores the old folder if the new one is not in place.
    fn restore(&self) -> io::Result<()> {
        if !exists(&self.replaced) {
            return Ok(());
        }
        if exists(&self.target) {
            return fs::remove_dir_all(&self.replaced);
        }
        fs::rename(&self.replaced, &self.target)?;
        sync(&self.parent)
    }

    /// Renames the finished folder to the target.
    fn publish(&self) -> io::Result<()> {
        if !exists(&self.target) {
            fs::rename(&self.saving, &self.target)?;
            return sync(&self.parent);
        }
        fs::rename(&self.target, &self.replaced)?;
        if let Err(error) = fs::rename(&self.saving, &self.target) {
            self.restore()?;
            return Err(error);
        }
        sync(&self.parent)?;
        if let Err(error) = fs::remove_dir_all(&self.replaced) {
            tracing::warn!(path = %self.replaced.display(), %error, "a replaced checkpoint cannot be removed yet");
        }
        Ok(())
    }
}

/// Removes the directory unless it was finished.
struct UnfinishedDir<'a>(Option<&'a Path>);

impl<'a> UnfinishedDir<'a> {
    /// Makes an empty directory, in place of one that an interrupted write may have left.
    fn create(path: &'a Path) -> io::Result<Self> {
        if exists(path) {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir(path)?;
        Ok(Self(Some(path)))
    }

    fn finished(mut self) {
        self.0 = None;
    }
}

impl Drop for UnfinishedDir<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0
            && exists(path)
            && let Err(error) = fs::remove_dir_all(path)
        {
            tracing::warn!(path = %path.display(), %error, "a half-written checkpoint cannot be removed yet");
        }
    }
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Syncs a file or directory.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Syncs all that is below `dir`, then `dir`; returns the files' size in bytes.
fn sync_tree(dir: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            size += sync_tree(&entry.path())?;
        } else {
            size += entry.metadata()?.len();
            sync(&entry.path())?;
        }
    }
    sync(dir)?;
    Ok(size)
}

/// Creates a directory and its ancestors, each entry synced into its parent.
fn create_synced(dir: &Path) -> io::Result<()> {
    if dir.as_os_str().is_empty() || exists(dir) {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(Path::new(""));
    create_synced(parent)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync(if parent.as_os_str().is_empty() { Path::new(".") } else { parent }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::Category;

    use super::*;

    fn target(dir: &Path, overwrite: bool) -> SaveTarget {
        SaveTarget { dir: dir.join("run/weights/one"), overwrite }
    }

    fn save(target: &SaveTarget, text: &str) -> Result<SavedFiles, OpError> {
        write_atomically(target, |dir| {
            fs::create_dir(dir.join("sub")).unwrap();
            fs::write(dir.join("sub/file"), text).unwrap();
            Ok(())
        })
    }

    fn content(target: &SaveTarget) -> String {
        fs::read_to_string(target.dir.join("sub/file")).unwrap()
    }

    fn siblings(target: &SaveTarget) -> usize {
        fs::read_dir(target.dir.parent().unwrap()).unwrap().count()
    }

    #[test]
    fn writes_refuses_and_overwrites() {
        let root = tempfile::tempdir().unwrap();
        let once = target(root.path(), false);
        assert_eq!(save(&once, "first").unwrap(), SavedFiles { dir: once.dir.clone(), size_bytes: 5 });
        let error = save(&once, "second").unwrap_err();
        assert_eq!(error.category, Category::User);
        assert!(error.message.contains("\"one\" exists already"), "{error}");
        assert_eq!(content(&once), "first");
        let overwrite = target(root.path(), true);
        save(&overwrite, "second").unwrap();
        assert_eq!((content(&overwrite), siblings(&overwrite)), ("second".to_owned(), 1));
    }

    #[test]
    fn a_failed_write_leaves_the_target_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let target = target(root.path(), true);
        let fail = || {
            write_atomically(&target, |dir| {
                fs::write(dir.join("half"), "x").unwrap();
                Err(OpError::server("no"))
            })
        };
        fail().unwrap_err();
        assert_eq!(siblings(&target), 0);
        save(&target, "first").unwrap();
        fail().unwrap_err();
        assert_eq!((content(&target), siblings(&target)), ("first".to_owned(), 1));
    }

    /// Checks the files after a crash at each point of an overwrite, and after the next write.
    #[test]
    fn a_crash_never_loses_both() {
        let points: [(&[(&str, &str)], &str); 3] = [
            (&[("one", "old"), (".one.saving", "half")], "old"),
            (&[(".one.replaced", "old"), (".one.saving", "new")], "old"),
            (&[(".one.replaced", "old"), ("one", "new")], "new"),
        ];
        for (folders, survivor) in points {
            let root = tempfile::tempdir().unwrap();
            let target = target(root.path(), false);
            for (name, text) in folders {
                let dir = target.dir.with_file_name(name).join("sub");
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join("file"), text).unwrap();
            }
            save(&target, "refused").unwrap_err();
            assert_eq!(content(&target), survivor);
        }
    }
}
