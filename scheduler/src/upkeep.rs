//! Recording what the scheduler asked for on its own account: saved runs, and snapshots that were written down.

use std::path::PathBuf;
use std::sync::Arc;

use trainyard_protocol::RunId;

use crate::core::Core;
use crate::queue::{Fence, Flight, Queue};
use crate::store::db::Conn;
use crate::store::{pruning, runs, sampling};
use crate::work::holds;
use crate::writer::{Urgency, Write};
use crate::{Effect, Error};

impl Core {
    /// The worker is done with a request of the scheduler's own. The queue is told once the store knows.
    pub(crate) fn upkept(&self, queue: &Queue, flight: &Flight, effects: Vec<Effect>) {
        let Fence::Run(run, epoch) = &flight.fence else { return };
        for effect in effects {
            let kept = match effect {
                Effect::RunSaved(dir) => Kept::Run(flight.seq_id, dir),
                // The run's next request has not begun: what is there now is what was saved.
                Effect::SnapshotSaved { key, dir } => Kept::Snapshot { made: queue.snapshot_made(&key), key, dir },
                _ => continue,
            };
            self.record(Keep { run: run.clone(), epoch: *epoch, kept });
        }
    }
}

enum Kept {
    /// Everything of the run up to this place of its order.
    Run(i64, PathBuf),
    /// The snapshot of this key that was taken then.
    Snapshot { key: String, made: u64, dir: PathBuf },
}

/// Notes what was saved, and drops what that makes unnecessary.
struct Keep {
    run: RunId,
    epoch: i64,
    kept: Kept,
}

/// What is not needed any more.
struct Unneeded {
    folder: Option<PathBuf>,
    blobs: Vec<String>,
}

impl Write for Keep {
    type Output = Option<Unneeded>;
    const URGENCY: Urgency = Urgency::Record;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        if !holds(conn, core, &Fence::Run(self.run.clone(), self.epoch)).await? {
            return Ok(None);
        }
        match &self.kept {
            Kept::Snapshot { key, dir, .. } => {
                sampling::set_snapshot_dir(conn, &self.run, key, Some(dir)).await?;
                Ok(Some(Unneeded { folder: None, blobs: Vec::new() }))
            }
            Kept::Run(seq_id, dir) => {
                let folder = runs::save_run(conn, &self.run, *seq_id, dir).await?;
                let blobs = pruning::prune_log(conn, &self.run, *seq_id).await?;
                Ok(Some(Unneeded { folder, blobs }))
            }
        }
    }

    fn committed(&mut self, output: &Self::Output, core: &Arc<Core>) {
        let Some(Unneeded { folder, blobs }) = output else { return };
        core.with_queue(|queue| match &self.kept {
            Kept::Run(..) => queue.run_saved(&self.run),
            Kept::Snapshot { key, made, dir } => queue.snapshot_saved(&self.run, key, *made, dir),
        });
        if let Kept::Run(seq_id, _) = self.kept {
            tracing::info!(run = %self.run, seq_id, "a run was saved; its log up to there is pruned");
        }
        let (shared, folder, blobs) = (Arc::clone(core), folder.clone(), blobs.clone());
        core.runtime.spawn(async move {
            shared.blobs.remove(blobs).await;
            if let Some(folder) = folder {
                shared.remove_folder(folder).await;
            }
        });
    }
}
