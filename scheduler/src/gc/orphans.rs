//! Garbage collection in the storage: files and folders that no row names. Their process ended while it wrote them, or
//! they belonged to deleted checkpoints that were still needed at that time. Other processes may be writing, so objects
//! that were changed within the last hour are kept.

use std::path::PathBuf;
use std::time::Duration;

use trainyard_storage::{Area, StorageError};

use super::orphan_progress::OrphanGcProgress;
use crate::context::core::Core;
use crate::store::{blobs, folders, gc};
use crate::{Error, Timestamp};

/// Age below which objects are kept.
const AGE: Duration = Duration::from_secs(3600);
/// Number of entries of each area that one collection examines; the next one continues behind them.
const ENTRIES: usize = 5000;

impl Core {
    /// Examines the next part of the storage, unless the last collection was recent.
    pub(crate) async fn collect_orphans(&self) -> Result<(), Error> {
        let now = self.now();
        let Some(mut progress) = self.orphan_gc.start(now) else { return Ok(()) };
        // Objects in a folder have times by this machine's clock.
        let before = now.min(self.clock.own_now()).minus(AGE);
        self.collect_blobs(before, &mut progress).await?;
        for area in folders::AREAS {
            self.collect_folders(area, before, &mut progress).await?;
        }
        Ok(())
    }

    async fn collect_blobs(&self, before: Timestamp, progress: &mut OrphanGcProgress) -> Result<(), Error> {
        let after = progress.take_cursor(blobs::AREA.root);
        let (names, next) = self.blobs.older(before, after, ENTRIES).await?;
        let mut orphans = Vec::new();
        for name in names {
            if !gc::is_named(&mut self.system_reader().await?, &name).await? {
                orphans.push(name);
            }
        }
        if !orphans.is_empty() {
            tracing::info!(blobs = orphans.len(), "garbage collection: removing orphaned blobs");
        }
        self.blobs.remove(orphans).await;
        progress.set_cursor(blobs::AREA.root, next);
        Ok(())
    }

    async fn collect_folders(
        &self,
        area: Area,
        before: Timestamp,
        progress: &mut OrphanGcProgress,
    ) -> Result<(), Error> {
        let failed = |error: StorageError| Error::store("look through the storage", error);
        let after = progress.take_cursor(area.root);
        let older = self.options.storage.older(area, before.system_time(), after, ENTRIES).await.map_err(failed)?;
        for dir in older.entries {
            self.remove_unless_needed(dir).await?;
        }
        progress.set_cursor(area.root, older.next);
        Ok(())
    }

    /// Removes a folder unless the store shows that something needs it.
    pub(super) async fn remove_unless_needed(&self, dir: PathBuf) -> Result<(), Error> {
        if !folders::is_needed(&mut self.system_reader().await?, &dir, self.revivable_after()).await? {
            self.remove_folder(dir).await;
        }
        Ok(())
    }

    /// Removes an unneeded folder. A failure only costs space and is logged: a later collection removes the rest.
    pub(crate) async fn remove_folder(&self, dir: PathBuf) {
        if !self.blobs.may_remove().await {
            return;
        }
        match self.options.storage.remove_folder(&dir).await {
            Ok(()) => tracing::info!(dir = %dir.display(), "garbage collection: folder removed"),
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "garbage collection failed: folder remains until it is retried");
            }
        }
    }
}
