//! Claiming leases of runs: as many as are this worker's share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trainyard_protocol::RunId;

use super::release::ReleaseRun;
use crate::core::Core;
use crate::store::db::Conn;
use crate::store::{leases, workers};
use crate::write::Write;
use crate::{Error, WorkerOptions};

/// Runs claimed in one transaction.
const RUNS_AT_ONCE: usize = 64;

impl Core {
    pub(super) async fn claim_runs(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let claimed = self.call(ClaimRuns).await?;
            let count = claimed.len();
            for (run, epoch) in claimed {
                tracing::info!(%run, epoch, "lease claimed");
                if let Err(error) = self.load_run(run.clone(), epoch).await {
                    tracing::warn!(%run, epoch, %error, "releasing lease: run could not be read");
                    self.record(ReleaseRun { run, epoch });
                }
            }
            if count < RUNS_AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Runs that this worker has beyond its share, by base model, now that others are there to have them.
    pub(super) async fn surplus(self: &Arc<Self>) -> Result<BTreeMap<String, usize>, Error> {
        let mut surplus = BTreeMap::new();
        let Some(worker) = self.options.worker.as_ref().filter(|_| self.is_shared()) else { return Ok(surplus) };
        let conn = &mut self.reader().await?;
        let workers = workers::models_of_workers(conn).await?;
        for model in &worker.models {
            let (held, share) = held_and_share(conn, &workers, worker, model).await?;
            surplus.insert(model.clone(), held.saturating_sub(share));
        }
        Ok(surplus)
    }
}

/// Claims leases of runs, as many as are this worker's share. Returns them with their epochs.
struct ClaimRuns;

impl Write for ClaimRuns {
    type Output = Vec<(RunId, i64)>;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let Some(worker) = &core.options.worker else { return Ok(Vec::new()) };
        if !is_registered(conn, core).await? {
            return Ok(Vec::new());
        }
        let workers = workers::models_of_workers(conn).await?;
        let mut claimed = Vec::new();
        for model in &worker.models {
            let (held, share) = held_and_share(conn, &workers, worker, model).await?;
            let limit = share.saturating_sub(held).min(RUNS_AT_ONCE - claimed.len());
            if limit > 0 {
                claimed.extend(leases::claim_runs(conn, &worker.id, std::slice::from_ref(model), limit).await?);
            }
        }
        Ok(claimed)
    }
}

/// Whether this process's worker may claim anything: after its lease expired it registers again first, and drops what
/// it had.
pub(super) async fn is_registered(conn: &mut Conn, core: &Core) -> Result<bool, Error> {
    let Some(worker) = core.worker_id() else { return Ok(false) };
    workers::is_registered(conn, worker, core.incarnation.load(Ordering::Acquire)).await
}

/// Runs of a model that a worker has, and how many it may have so that all workers with the model have about as many;
/// given the models of each worker.
async fn held_and_share(
    conn: &mut Conn,
    workers: &[Vec<String>],
    worker: &WorkerOptions,
    model: &String,
) -> Result<(usize, usize), Error> {
    let alike = workers.iter().filter(|models| models.contains(model)).count();
    let (placed, held) = leases::count_placed_runs(conn, model, &worker.id).await?;
    Ok((held, placed.div_ceil(alike.max(1))))
}
