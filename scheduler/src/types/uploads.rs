//! Adapters that clients upload.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trainyard_protocol::{OpError, RunId, RunSpec, TinkerPath, UploadId};

use crate::{Error, Timestamp};

/// An upload to start.
#[derive(Clone, Debug, PartialEq)]
pub struct NewUpload {
    /// Base model and parameters that the adapter must fit.
    pub spec: RunSpec,
    /// Project of the resulting checkpoint.
    pub project_id: Option<String>,
    /// Names of the files.
    pub files: Vec<String>,
}

/// An upload of an adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    /// Id of the upload.
    pub id: UploadId,
    /// Base model and parameters that the adapter must fit.
    pub spec: RunSpec,
    /// Project of the resulting checkpoint.
    pub project_id: Option<String>,
    /// Folder of the storage that contains the pieces.
    pub dir: PathBuf,
    /// Time when the upload is deleted together with its pieces.
    pub expires_at: Timestamp,
    /// Received parts of all files, by name.
    pub files: BTreeMap<String, UploadedFile>,
    /// State of the upload.
    pub state: UploadState,
}

/// State of an upload.
#[derive(Clone, Debug, PartialEq)]
pub enum UploadState {
    /// The files can be written.
    Open,
    /// A run checks the upload; its files can no longer be written.
    Checking(RunId),
    /// The upload became a checkpoint.
    Finished(TinkerPath),
    /// The upload was refused.
    Refused(OpError),
}

/// Received parts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadedFile {
    /// Size of the whole file in bytes, if it is known.
    pub total: Option<u64>,
    /// Files of the upload's folder that contain the pieces, in order, with their lengths.
    pub pieces: Vec<(String, u64)>,
}

impl Upload {
    /// Refuses the upload while a file is incomplete.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the file and the number of bytes received.
    pub fn check_complete(&self) -> Result<(), Error> {
        let Some((name, file)) = self.files.iter().find(|(_, file)| !file.is_complete()) else { return Ok(()) };
        let of = file.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let received = file.received();
        Err(Error::Invalid(format!("{name}: {received}{of} bytes arrived; it is not complete")))
    }
}

impl UploadedFile {
    /// Returns the number of bytes received without gaps from the first one.
    pub fn received(&self) -> u64 {
        self.pieces.iter().map(|(_, length)| length).sum()
    }

    /// Returns whether the file is complete.
    pub fn is_complete(&self) -> bool {
        self.total == Some(self.received())
    }
}

/// Result of the check of an upload.
#[derive(Clone, Debug, PartialEq)]
pub enum UploadEnd {
    /// The upload became this checkpoint.
    Checkpoint(TinkerPath),
    /// The upload was refused.
    Refused(OpError),
    /// The check was not finished; another one may follow.
    Unchecked,
}
