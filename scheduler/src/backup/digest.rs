//! Computes SHA-256 digests of files.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::fs::{File as AsyncFile, OpenOptions};
use tokio::io::AsyncWriteExt;
use trainyard_protocol::hex;

use super::BackupError;

/// Number of bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Size and digest of a file's contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDigest {
    /// Size of the file in bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// Writer of a new file that only its owner can read; computes the digest of the written bytes.
pub(super) struct DigestWriter {
    path: PathBuf,
    file: AsyncFile,
    hash: Sha256,
    size: u64,
}

impl DigestWriter {
    pub(super) async fn create(path: &Path) -> Result<Self, BackupError> {
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).await;
        let file = opened.map_err(BackupError::file(path))?;
        Ok(Self { path: path.to_owned(), file, hash: Sha256::new(), size: 0 })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.file.write_all(bytes).await.map_err(BackupError::file(&self.path))
    }

    /// Syncs the file to disk, then returns its size and digest.
    pub(super) async fn finish(mut self) -> Result<FileDigest, BackupError> {
        self.file.flush().await.map_err(BackupError::file(&self.path))?;
        self.file.sync_all().await.map_err(BackupError::file(&self.path))?;
        Ok(FileDigest { size: self.size, sha256: hex(&self.hash.finalize()) })
    }
}

/// Returns the size and digest of an existing file.
pub(crate) fn digest(path: &Path) -> Result<FileDigest, BackupError> {
    let mut file = File::open(path).map_err(BackupError::file(path))?;
    let (mut hash, mut size, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece).map_err(BackupError::file(path))?;
        if read == 0 {
            return Ok(FileDigest { size, sha256: hex(&hash.finalize()) });
        }
        hash.update(&piece[..read]);
        size += read as u64;
    }
}
