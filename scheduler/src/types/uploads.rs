//! Adapters that clients upload.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trainyard_protocol::{OpError, RunId, RunSpec, TinkerPath, UploadId};

use crate::{Error, Timestamp};

/// An upload to start.
#[derive(Clone, Debug, PartialEq)]
pub struct NewUpload {
    /// What the adapter has to be.
    pub spec: RunSpec,
    /// The project of the checkpoint.
    pub project_id: Option<String>,
    /// The names of its files.
    pub files: Vec<String>,
}

/// An upload.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    /// Its id.
    pub id: UploadId,
    /// What the adapter has to be.
    pub spec: RunSpec,
    /// The project of the checkpoint.
    pub project_id: Option<String>,
    /// The folder of the storage that holds the pieces.
    pub dir: PathBuf,
    /// When it is deleted with what arrived.
    pub expires_at: Timestamp,
    /// What arrived, by the file's name; all files are there.
    pub files: BTreeMap<String, UploadedFile>,
    /// How far it is.
    pub state: UploadState,
}

/// How far an upload is.
#[derive(Clone, Debug, PartialEq)]
pub enum UploadState {
    /// Its files can be written.
    Open,
    /// A run checks it; its files can't be written any more.
    Checking(RunId),
    /// It became a checkpoint.
    Finished(TinkerPath),
    /// It was refused.
    Refused(OpError),
}

/// What arrived of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadedFile {
    /// Bytes of the whole file, once they are known.
    pub total: Option<u64>,
    /// The files of the upload's folder that hold it, in their order, with their lengths.
    pub pieces: Vec<(String, u64)>,
}

impl Upload {
    /// Refuses it while a file is not complete.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the file and how much of it arrived.
    pub fn check_complete(&self) -> Result<(), Error> {
        let Some((name, file)) = self.files.iter().find(|(_, file)| !file.is_complete()) else { return Ok(()) };
        let of = file.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let received = file.received();
        Err(Error::Invalid(format!("{name}: {received}{of} bytes arrived; it is not complete")))
    }
}

impl UploadedFile {
    /// Bytes that arrived, from the first one without gaps.
    pub fn received(&self) -> u64 {
        self.pieces.iter().map(|(_, length)| length).sum()
    }

    /// Whether all of it arrived.
    pub fn is_complete(&self) -> bool {
        self.total == Some(self.received())
    }
}

/// How the check of an upload ended.
#[derive(Clone, Debug, PartialEq)]
pub enum UploadEnd {
    /// It became this checkpoint.
    Checkpoint(TinkerPath),
    /// It was refused.
    Refused(OpError),
    /// The check came to no end, and another one may follow.
    Unchecked,
}
