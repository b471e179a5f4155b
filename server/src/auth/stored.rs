//! Keys of the store, looked up once in a while: a change of them is known at once where it was made, through a
//! notification elsewhere, and within [`MAX_AGE`] in any case.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use trainyard_scheduler::{Directory, Error, FoundKey, Scheduler};

/// How long an answer of the store is used.
pub(super) const MAX_AGE: Duration = Duration::from_millis(500);
/// Answers that are held at most: one for each key that is in use, and for each wrong one that was tried lately.
const MOST: usize = 16_384;

/// What the store said of keys.
pub(super) struct StoredKeys {
    scheduler: Scheduler,
    directory: Directory,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The changes that were known when these were looked up.
    version: u64,
    keys: HashMap<[u8; 32], (Instant, Option<Arc<FoundKey>>)>,
    /// Whether there are any keys, and when that was looked up.
    any: Option<(Instant, bool)>,
}

impl Known {
    /// Forgets what was looked up before the latest change.
    fn at(&mut self, version: u64) -> &mut Self {
        if self.version != version {
            let any = self.any.filter(|(_, any)| *any);
            *self = Self { version, any, ..Self::default() };
        }
        self
    }
}

impl StoredKeys {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self { directory: scheduler.directory(), scheduler, known: Mutex::default() }
    }

    /// The key with this digest.
    pub(super) async fn find(&self, digest: &[u8; 32]) -> Result<Option<Arc<FoundKey>>, Error> {
        let version = self.scheduler.directory_version();
        if let Some((since, found)) = self.with(version, |known| known.keys.get(digest).cloned())
            && since.elapsed() < MAX_AGE
        {
            return Ok(found);
        }
        let since = Instant::now();
        let found = self.directory.key(digest).await?.map(Arc::new);
        self.with(version, |known| {
            if known.keys.len() >= MOST {
                known.keys.retain(|_, (since, _)| since.elapsed() < MAX_AGE);
            }
            if known.keys.len() < MOST {
                known.keys.insert(*digest, (since, found.clone()));
            }
        });
        Ok(found)
    }

    /// Whether any key was ever created. While the store can't be read, the last answer counts.
    pub(super) async fn any(&self) -> Result<bool, Error> {
        let version = self.scheduler.directory_version();
        let last = self.with(version, |known| known.any);
        if let Some((since, any)) = last
            && (any || since.elapsed() < MAX_AGE)
        {
            // Keys are revoked, never deleted.
            return Ok(any);
        }
        let since = Instant::now();
        match (self.directory.has_keys().await, last) {
            (Ok(any), _) => {
                self.with(version, |known| known.any = Some((since, any)));
                Ok(any)
            }
            (Err(_), Some((_, any))) => Ok(any),
            (Err(error), None) => Err(error),
        }
    }

    fn with<T>(&self, version: u64, call: impl FnOnce(&mut Known) -> T) -> T {
        call(self.known.lock().unwrap_or_else(PoisonError::into_inner).at(version))
    }
}
