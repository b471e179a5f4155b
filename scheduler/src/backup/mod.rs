//! Backups of database and storage that are consistent with each other, and their restoration.
//!
//! Objects of the storage never change and are written before the row that names them. So a backup places a hold, which
//! keeps every process from removing objects ([`backup_holds`](crate::store::backup_holds)), copies the rows as one
//! snapshot of the database shows them, then every object that these rows need. The service goes on meanwhile.
//!
//! A backup is a folder: `manifest.json` lists all other files with their sizes and SHA-256 digests; `tables/<table>.jsonl`
//! holds the names of the columns, then a row per line; `objects/` is laid out like the storage, and `private/` like
//! the data folder. It is written under the name `<folder>.partial` and renamed once it is complete and synced.

mod digest;
mod error;
mod files;
mod hold;
mod load;
mod manifest;
mod objects;
mod restore;
mod rows;
mod take;

#[cfg(test)]
pub(crate) use digest::digest;
pub use error::BackupError;
pub use manifest::Manifest;
pub use restore::{Restore, restore};
pub use take::{Backup, backup};

use std::path::Path;

/// Checks that every file of a backup is as it was written, and that no other file is there. Returns its manifest.
///
/// # Errors
/// [`BackupError::Damaged`] with the first file that is not.
pub fn verify(backup: &Path) -> Result<Manifest, BackupError> {
    let manifest = Manifest::read(backup)?;
    files::verify(backup, &manifest.files)?;
    Ok(manifest)
}
