//! Removing what no row names: files and folders that were being written when their process ended, and folders of
//! deleted checkpoints that something still needed then. Other processes may be writing at this moment, so nothing
//! is touched until it has been left alone for an hour.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::core::Core;
use crate::storage::{Area, StorageError};
use crate::store::{folders, pruning};
use crate::{Error, Timestamp};

/// How often to look.
const PERIOD: Duration = Duration::from_secs(600);
/// What was changed less long ago stays.
const AGE: Duration = Duration::from_secs(3600);
/// Entries of each area to look at in one go; the next one goes on behind them.
const ENTRIES: usize = 5000;

/// Parts of the storage whose entries are folders that rows name.
const FOLDERS: [Area; 2] = [Area { root: "checkpoints", depth: 3 }, Area { root: "snapshots", depth: 2 }];

/// How far the storage has been looked through.
#[derive(Default)]
pub(crate) struct Tidying(Mutex<Progress>);

#[derive(Default)]
struct Progress {
    last: Option<Timestamp>,
    blobs: Option<String>,
    folders: [Option<String>; FOLDERS.len()],
}

impl Core {
    /// Looks at the next part of the storage, unless it did so a short while ago.
    pub(crate) async fn tidy(&self) -> Result<(), Error> {
        let Ok(mut progress) = self.tidying.0.try_lock() else { return Ok(()) };
        let now = self.now();
        if progress.last.is_some_and(|last| now < last.plus(PERIOD)) {
            return Ok(());
        }
        progress.last = Some(now);
        let before = now.minus(AGE);
        progress.blobs = self.tidy_blobs(before, progress.blobs.take()).await?;
        for (area, after) in FOLDERS.into_iter().zip(&mut progress.folders) {
            *after = self.tidy_folders(area, before, after.take()).await?;
        }
        Ok(())
    }

    async fn tidy_blobs(&self, before: Timestamp, after: Option<String>) -> Result<Option<String>, Error> {
        let (names, next) = self.blobs.older(before, after, ENTRIES).await?;
        let mut unneeded = Vec::new();
        for name in names {
            if !pruning::is_named(&mut self.reader().await?, &name).await? {
                unneeded.push(name);
            }
        }
        if !unneeded.is_empty() {
            tracing::info!(blobs = unneeded.len(), "removing blobs that no request names");
        }
        self.blobs.remove(unneeded).await;
        Ok(next)
    }

    async fn tidy_folders(
        &self,
        area: Area,
        before: Timestamp,
        after: Option<String>,
    ) -> Result<Option<String>, Error> {
        let failed = |error: StorageError| Error::store("look through the storage", error);
        let older = self.options.storage.older(area, before, after, ENTRIES).await.map_err(failed)?;
        for dir in older.entries {
            if !folders::is_needed(&mut self.reader().await?, &dir, self.revivable_after()).await? {
                self.remove_folder(dir).await;
            }
        }
        Ok(older.next)
    }

    /// Removes a folder that nothing needs any more. A failure costs space only and is logged: a later call removes
    /// what is left.
    pub(crate) async fn remove_folder(&self, dir: PathBuf) {
        match self.options.storage.remove_folder(&dir).await {
            Ok(()) => tracing::info!(dir = %dir.display(), "a folder that nothing needs was removed"),
            Err(error) => tracing::warn!(dir = %dir.display(), %error, "a folder that nothing needs remains"),
        }
    }
}
