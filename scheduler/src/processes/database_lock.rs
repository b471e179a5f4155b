//! Locks a SQLite file against use by other processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// Number of steps to wait for another process on the same database to end.
const LOCK_STEPS: u32 = 500;
const LOCK_STEP: Duration = Duration::from_millis(10);

/// Locks the database against other processes: each would believe that the runs belong to it.
///
/// # Errors
/// [`Error::Invalid`] while another process has the lock.
pub(crate) async fn lock_database(database: &Path) -> Result<File, Error> {
    const OPENING: &str = "open the database";
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(path))
        .map_err(|error| Error::store(OPENING, error))?;
    for _ in 0..LOCK_STEPS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // The previous process may be about to end.
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_STEP).await,
            Err(TryLockError::Error(error)) => return Err(Error::store(OPENING, error)),
        }
    }
    Err(Error::Invalid(format!("database {} is in use by another process", database.display())))
}
