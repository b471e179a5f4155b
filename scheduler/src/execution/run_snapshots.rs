//! Records saved runs and saved snapshots for sampling.

use std::path::PathBuf;
use std::sync::Arc;

use trainyard_protocol::{RunId, SamplingSessionId};

use crate::context::core::{Core, Subject, Urgency};
use crate::lease::holds_lease;
use crate::queue::{Fence, InFlightRequest, Queue};
use crate::store::db::{Conn, RowScope};
use crate::store::{gc, runs, sampling, saved_snapshots};
use crate::writer::write::Write;
use crate::{Effect, Error};

impl Core {
    /// Returns the error of a sample from a snapshot that was collected.
    pub(crate) fn snapshot_collected(&self, sampling: &SamplingSessionId) -> Error {
        let (kept, seconds) = (self.options.kept_snapshots, self.options.snapshot_retention.as_secs());
        Error::SnapshotCollected { id: sampling.to_string(), kept, seconds }
    }

    /// Records a completed maintenance operation. The queue changes once the record is committed.
    pub(crate) fn record_maintenance(&self, queue: &Queue, finished: &InFlightRequest, effects: Vec<Effect>) {
        let Fence::Run(run, epoch) = &finished.fence else { return };
        for effect in effects {
            let saved = match effect {
                Effect::RunSaved(dir) => Saved::Run(finished.seq_id, dir),
                // The run's next request waits for this one, so the present snapshot is the saved one.
                Effect::SnapshotSaved { key, dir } => Saved::Snapshot { made: queue.snapshot_made(&key), key, dir },
                _ => continue,
            };
            self.record(RecordSave { run: run.clone(), epoch: *epoch, saved });
        }
    }
}

enum Saved {
    /// Everything of the run up to this position in its order.
    Run(i64, PathBuf),
    /// The snapshot of this key that was taken at this time.
    Snapshot { key: String, made: u64, dir: PathBuf },
}

/// A write that records a save, and drops objects that it makes unnecessary.
struct RecordSave {
    run: RunId,
    epoch: i64,
    saved: Saved,
}

/// Objects that have become unnecessary.
#[derive(Default)]
struct Garbage {
    folders: Vec<PathBuf>,
    /// Keys of collected snapshots.
    snapshots: Vec<String>,
    blobs: Vec<String>,
}

impl Write for RecordSave {
    /// Collected objects; `None` if the lease had passed to another worker.
    type Output = Option<Garbage>;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn subjects(&self) -> Vec<Subject> {
        vec![Subject::Run(self.run.clone())]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        if !holds_lease(conn, core, &Fence::Run(self.run.clone(), self.epoch)).await? {
            return Ok(None);
        }
        match &self.saved {
            Saved::Snapshot { key, dir, .. } => {
                sampling::set_snapshot_dir(conn, &self.run, key, Some(dir)).await?;
                let (kept, before) = (core.options.kept_snapshots, core.now().minus(core.options.snapshot_retention));
                let collected = saved_snapshots::collect_snapshots(conn, &self.run, kept, before).await?;
                let (snapshots, folders) = collected.into_iter().map(|snapshot| (snapshot.key, snapshot.dir)).unzip();
                Ok(Some(Garbage { folders, snapshots, blobs: Vec::new() }))
            }
            Saved::Run(seq_id, dir) => {
                let folders = Vec::from_iter(runs::save_run(conn, &self.run, *seq_id, dir).await?);
                let blobs = gc::truncate_log(conn, &self.run, *seq_id).await?;
                Ok(Some(Garbage { folders, snapshots: Vec::new(), blobs }))
            }
        }
    }

    fn committed(&mut self, output: &Self::Output, core: &Arc<Core>) {
        let Some(Garbage { folders, snapshots, blobs }) = output else { return };
        core.with_queue(|queue| match &self.saved {
            Saved::Run(..) => queue.run_saved(&self.run),
            Saved::Snapshot { key, made, dir } => {
                queue.snapshot_saved(&self.run, key, *made, dir);
                queue.snapshots_collected(&self.run, snapshots.iter().cloned());
            }
        });
        if let Saved::Run(seq_id, _) = self.saved {
            tracing::info!(run = %self.run, seq_id, "run snapshot saved; request log truncated up to it");
        }
        let (shared, folders, blobs) = (Arc::clone(core), folders.clone(), blobs.clone());
        core.runtime.spawn(async move {
            shared.blobs.remove(blobs).await;
            for folder in folders {
                shared.remove_folder(folder).await;
            }
        });
    }
}
