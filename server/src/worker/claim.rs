//! Who wrote a checkpoint's folder.
//!
//! A server that dies between writing a folder and recording it executes the save again. The note beside the
//! folder tells that leftover, which the save may replace, from another request's checkpoint, which it may not.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use trainyard_protocol::{OpError, RequestId};

/// Notes that `request` writes `dir`. Returns whether the save must replace a folder that exists; fails with
/// the user's error when it exists and may not be replaced.
pub(super) fn claim(dir: &Path, request: &RequestId, overwrite: bool) -> Result<bool, OpError> {
    let io_error = |error: io::Error| {
        tracing::error!(%error, dir = %dir.display(), "a checkpoint's folder cannot be prepared");
        OpError::server("the checkpoint's folder cannot be prepared; the server's log has the details")
    };
    let (parent, note) = note_of(dir).ok_or_else(|| io_error(io::ErrorKind::InvalidInput.into()))?;
    let exists = dir.try_exists().map_err(io_error)?;
    if exists && !overwrite && !wrote(&note, request).map_err(io_error)? {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(OpError::user(format!(
            "path: a checkpoint named {name:?} exists; choose another name or overwrite"
        )));
    }
    write_note(parent, &note, request).map_err(io_error)?;
    Ok(exists || overwrite)
}

/// The folder's parent and the note in it; checkpoint names never start with a dot, so it is no checkpoint.
fn note_of(dir: &Path) -> Option<(&Path, PathBuf)> {
    let parent = dir.parent()?;
    let name = dir.file_name()?.to_str()?;
    Some((parent, parent.join(format!(".{name}.request"))))
}

fn wrote(note: &Path, request: &RequestId) -> io::Result<bool> {
    match fs::read(note) {
        Ok(bytes) => Ok(bytes == request.as_str().as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_note(parent: &Path, note: &Path, request: &RequestId) -> io::Result<()> {
    fs::create_dir_all(parent)?;
    let mut file = File::create(note)?;
    file.write_all(request.as_str().as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_the_request_that_wrote_a_folder_may_replace_it() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("run/weights/final");
        let (first, second) = (RequestId::new("first"), RequestId::new("second"));
        assert!(!claim(&dir, &first, false).unwrap(), "nothing there yet");
        fs::create_dir(&dir).unwrap();
        assert!(claim(&dir, &first, false).unwrap(), "its own leftover");
        let refusal = claim(&dir, &second, false).unwrap_err();
        assert_eq!(refusal.category, trainyard_protocol::Category::User);
        assert!(refusal.message.contains("\"final\""), "{}", refusal.message);
        assert!(claim(&dir, &second, true).unwrap(), "replacing is allowed when asked for");
        assert!(claim(&dir, &first, false).is_err(), "it is the second's now");
    }
}
