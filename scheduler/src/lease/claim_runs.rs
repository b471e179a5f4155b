//! Claims leases of runs up to this worker's share.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::RunId;

use super::release::ReleaseRun;
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::leases::{self, ClaimedRun};
use crate::store::numerics;
use crate::store::workers::{self, LiveWorker};
use crate::writer::write::Write;
use crate::{Error, NumericsChange, WorkerOptions};

/// Number of runs claimed in one transaction.
const RUNS_AT_ONCE: usize = 64;

impl Core {
    pub(super) async fn claim_runs(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let claimed = self.call(ClaimRuns).await?;
            let count = claimed.len();
            for Claimed { run, epoch, change } in claimed {
                tracing::info!(%run, epoch, "lease claimed");
                if let Some(NumericsChange { from, to, .. }) = change {
                    tracing::warn!(%run, from, to, "run continues with different numerics: its results are not bit-identical to before");
                }
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

    /// Returns the numbers of runs that this worker has beyond its share, by base model, for other workers to take.
    pub(super) async fn surplus(self: &Arc<Self>) -> Result<BTreeMap<String, usize>, Error> {
        let mut surplus = BTreeMap::new();
        let Some(worker) = self.options.worker.as_ref().filter(|_| self.is_shared()) else { return Ok(surplus) };
        let conn = &mut self.system_reader().await?;
        let workers = workers::live_workers(conn).await?;
        for model in &worker.models {
            let (held, share) = self.held_and_share(conn, &workers, worker, model).await?;
            surplus.insert(model.clone(), held.saturating_sub(share));
        }
        Ok(surplus)
    }

    /// Returns the number of runs of a model that this process's worker has, and its share. With equal shares, all
    /// workers that compute the model alike have about as many.
    async fn held_and_share(
        &self,
        conn: &mut Conn,
        workers: &[LiveWorker],
        worker: &WorkerOptions,
        model: &String,
    ) -> Result<(usize, usize), Error> {
        let here = self.stored_numerics(model);
        let alike = workers.iter().filter(|other| other.models.get(model) == Some(&here));
        let alike: Vec<String> = alike.map(|worker| worker.id.clone()).collect();
        let continues = self.continues_others();
        let (placed, held) = leases::count_placed_runs(conn, model, &worker.id, &alike, continues).await?;
        Ok((held, placed.div_ceil(alike.len().max(1))))
    }
}

/// A run that was claimed.
struct Claimed {
    run: RunId,
    epoch: i64,
    /// Change of the run's numerics, if the worker computes differently.
    change: Option<NumericsChange>,
}

/// A write that claims leases of runs up to this worker's share.
struct ClaimRuns;

impl Write for ClaimRuns {
    type Output = Vec<Claimed>;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let Some(worker) = &core.options.worker else { return Ok(Vec::new()) };
        if !is_registered(conn, core).await? {
            return Ok(Vec::new());
        }
        let (workers, continues) = (workers::live_workers(conn).await?, core.continues_others());
        let mut claimed = Vec::new();
        for model in &worker.models {
            let (held, share) = core.held_and_share(conn, &workers, worker, model).await?;
            let limit = share.saturating_sub(held).min(RUNS_AT_ONCE - claimed.len());
            if limit == 0 {
                continue;
            }
            let runs = leases::claim_runs(conn, &worker.id, std::slice::from_ref(model), limit, continues).await?;
            let to = core.stored_numerics(model).map(|here| here.arithmetic);
            for ClaimedRun { id: run, epoch, arithmetic: from } in runs {
                let changed = from.zip(to.clone()).filter(|(from, to)| from != to);
                let change = changed.map(|(from, to)| NumericsChange { at: core.now().as_millis(), from, to });
                if let Some(change) = &change {
                    numerics::change_numerics(conn, &run, change).await?;
                }
                claimed.push(Claimed { run, epoch, change });
            }
        }
        Ok(claimed)
    }

    fn committed(&mut self, claimed: &Self::Output, core: &Arc<Core>) {
        let changed = claimed.iter().filter(|claimed| claimed.change.is_some()).count();
        core.metrics.numerics_changes.inc_by(changed as u64);
    }
}

/// Returns whether this process's worker may claim anything. After its lease expired it must first drop everything and
/// register again.
pub(super) async fn is_registered(conn: &mut Conn, core: &Core) -> Result<bool, Error> {
    let Some(worker) = core.worker_id() else { return Ok(false) };
    workers::is_registered(conn, worker, core.heartbeats.incarnation()).await
}
