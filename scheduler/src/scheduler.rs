//! The scheduler's handle: opening and closing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{Clock, Error, SystemClock};

/// How to open a scheduler.
#[derive(Clone)]
pub struct Options {
    /// The SQLite file; created when missing.
    pub database: PathBuf,
    /// The folder for payloads and results that are too large for a row; created when missing.
    pub blobs: PathBuf,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// A session expires when its heartbeats stop for so long.
    pub session_timeout: Duration,
    /// Results are kept for so long after a request finished.
    pub retention: Duration,
}

impl Options {
    /// The defaults: the machine's clock, sessions expire after 5 minutes, results after 24 hours.
    pub fn new(database: impl Into<PathBuf>, blobs: impl Into<PathBuf>) -> Self {
        Self {
            database: database.into(),
            blobs: blobs.into(),
            clock: Arc::new(SystemClock),
            session_timeout: Duration::from_secs(300),
            retention: Duration::from_secs(24 * 3600),
        }
    }
}

/// Counters since the scheduler was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Committed transactions.
    pub transactions: u64,
    /// Writes that these transactions held.
    pub writes: u64,
    /// Requests that wait for their turn.
    pub queued: u64,
    /// Requests that the worker holds.
    pub in_flight: u64,
}

/// The durable request log. Cheap to clone; all clones are one scheduler.
#[derive(Clone)]
pub struct Scheduler {}

impl Scheduler {
    /// Opens the store, migrates it and queues again what had not finished.
    ///
    /// # Errors
    /// [`Error::Store`] when files can't be opened or the schema is newer than this program knows.
    pub async fn open(_options: Options) -> Result<Self, Error> {
        Err(Error::Store("open"))
    }

    /// Writes what is still to be written and stops accepting anything.
    pub async fn close(&self) {}

    /// Counters, for metrics and tests.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}
