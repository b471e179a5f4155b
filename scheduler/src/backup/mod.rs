//! Consistent backups of database and storage, and their restoration.
//!
//! Objects of the storage never change and are written before the row that names them. So a backup first places a hold,
//! which keeps every process from removing objects ([`backup_holds`](crate::store::backup_holds)). It then copies the
//! rows from one snapshot of the database, and finally every object that these rows need. The service continues in the
//! meantime.
//!
//! A backup is a folder: `manifest.json` lists all other files with their sizes and SHA-256 digests;
//! `tables/<table>.jsonl` contains the names of the columns, then a row per line; `objects/` has the layout of the
//! storage, and `private/` that of the data folder. The folder is written under the name `<folder>.partial` and renamed
//! once it is complete and synced.

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

/// Checks that the files of a backup are exactly those that were written, unchanged. Returns the manifest.
///
/// # Errors
/// [`BackupError::Damaged`] with the first file that differs.
pub fn verify(backup: &Path) -> Result<Manifest, BackupError> {
    let manifest = Manifest::read(backup)?;
    files::verify(backup, &manifest.files)?;
    Ok(manifest)
}
