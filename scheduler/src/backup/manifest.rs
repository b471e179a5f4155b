//! The list of a backup's files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::BackupError;
use super::digest::{DigestWriter, FileDigest};
use crate::Timestamp;

/// Format of the backups that this program writes and reads.
const FORMAT: u32 = 1;
/// Name of the manifest's file.
pub(super) const MANIFEST: &str = "manifest.json";

/// Contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the folder's layout.
    format: u32,
    /// Version of the database's schema.
    pub schema_version: i64,
    /// Release of the program that took the backup.
    pub release: String,
    /// Start of the backup, in ms since the epoch: it contains everything committed by then.
    pub taken_at: Timestamp,
    /// Number of rows by table.
    pub rows: BTreeMap<String, u64>,
    /// All files except the manifest, relative to the folder.
    pub files: BTreeMap<String, FileDigest>,
    /// Objects that the database named but the storage lacked.
    pub missing: BTreeSet<String>,
}

impl Manifest {
    pub(super) fn new(schema_version: i64, release: String, taken_at: Timestamp) -> Self {
        let (rows, files, missing) = Default::default();
        Self { format: FORMAT, schema_version, release, taken_at, rows, files, missing }
    }

    /// Returns the total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.size).sum()
    }

    pub(super) fn read(backup: &Path) -> Result<Self, BackupError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let path = backup.join(MANIFEST);
        let text = fs::read(&path).map_err(BackupError::file(&path))?;
        let damaged = |error: serde_json::Error| BackupError::Damaged(format!("{}: {error}", path.display()));
        let Format { format } = serde_json::from_slice(&text).map_err(damaged)?;
        if format != FORMAT {
            let refusal = format!("{} has format {format}, and this program reads {FORMAT}", path.display());
            return Err(BackupError::Refused(refusal));
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    pub(super) async fn write(&self, backup: &Path) -> Result<(), BackupError> {
        let path = backup.join(MANIFEST);
        let text = serde_json::to_vec_pretty(self);
        let text = text.map_err(|error| BackupError::file(&path)(error.into()))?;
        let mut file = DigestWriter::create(&path).await?;
        file.write(&text).await?;
        file.finish().await.map(drop)
    }
}
