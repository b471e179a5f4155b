//! Taking work from the store: leases of runs with what waits in them, and samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use crate::core::Core;
use crate::leases::ReleaseSamples;
use crate::queue::{Claimed, History, Queue, RunQueue, creation_failed, session_ended};
use crate::store::db::Conn;
use crate::store::leases::{self, ClaimedSample};
use crate::store::requests::RequestRow;
use crate::store::runs::RunRow;
use crate::store::sampling::SnapshotRow;
use crate::store::{requests, runs, sampling, sessions, workers};
use crate::waiters::lock;
use crate::writer::Write;
use crate::{Error, FinishReason, RequestState, RunState, SamplingSession, SessionStatus, WorkerOptions};

/// Samples that a worker holds before it takes no more from the store.
const HELD_SAMPLES: usize = 1024;
/// Samples that it then still takes at once, of tenants of which it has none.
const NEWCOMERS: usize = 64;
/// In place of a claim's number: the store has no such claim.
const GONE: i64 = -1;
/// Runs taken in one transaction.
const RUNS_AT_ONCE: usize = 64;

impl Core {
    /// Takes what this process's worker can execute, and reads what is new of the runs that it has.
    pub(crate) async fn take_from_store(self: &Arc<Self>) -> Result<(), Error> {
        let hints = std::mem::take(&mut *lock(&self.hints));
        self.claim_runs().await?;
        for run in hints {
            self.read_new_requests(&run).await?;
        }
        self.claim_samples().await
    }

    /// Reads what is new of all runs of this process's worker: for what no notification told of.
    pub(crate) async fn read_all_new_requests(self: &Arc<Self>) -> Result<(), Error> {
        let runs = lock(&self.queue).run_ids();
        for run in runs {
            self.read_new_requests(&run).await?;
        }
        Ok(())
    }

    async fn claim_runs(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let claimed = self.call(ClaimRuns).await?;
            let count = claimed.len();
            for (run, epoch) in claimed {
                tracing::info!(%run, epoch, "a run's lease was taken");
                let loaded = self.load_run(run.clone(), epoch).await;
                if let Err(error) = loaded {
                    tracing::warn!(%run, %error, "a run could not be read; its lease is given back");
                    self.record(crate::leases::Release { run, epoch });
                }
            }
            if count < RUNS_AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Runs that this worker has beyond its share, by base model, now that others are there to have them.
    pub(crate) async fn surplus(self: &Arc<Self>) -> Result<BTreeMap<String, usize>, Error> {
        let mut surplus = BTreeMap::new();
        let Some(worker) = self.options.worker.as_ref().filter(|_| self.is_shared()) else { return Ok(surplus) };
        let conn = &mut self.reader().await?;
        let workers = workers::models_of_workers(conn, self.now()).await?;
        for model in &worker.models {
            let (held, share) = held_and_share(conn, &workers, worker, model).await?;
            surplus.insert(model.clone(), held.saturating_sub(share));
        }
        Ok(surplus)
    }

    /// Acts on the end of sessions of which no notification told.
    pub(crate) async fn end_ended_sessions(self: &Arc<Self>) -> Result<(), Error> {
        let known = lock(&self.queue).session_ids();
        let ended = sessions::ended_sessions(&mut self.reader().await?, known).await?;
        for (session, status) in ended {
            self.end_session_here(&session, &status).await?;
        }
        Ok(())
    }

    /// Acts on a session's end, if it has ended. What was accepted before that is read first: it may close a gap.
    pub(crate) async fn end_session_here(
        self: &Arc<Self>,
        session: &SessionId,
        status: &SessionStatus,
    ) -> Result<(), Error> {
        if *status == SessionStatus::Active {
            return Ok(());
        }
        let runs = lock(&self.queue).runs_of_session(session);
        for run in runs {
            self.read_new_requests(&run).await?;
        }
        self.with_queue(|queue| end_if_ended(queue, session, status));
        Ok(())
    }

    /// Compares leases and claims of the store with what the queue has. They may differ for a moment; what differs
    /// twice was lost on the way, as when the connection broke after a commit.
    pub(crate) async fn reconcile(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = self.worker_id() else { return Ok(()) };
        let conn = &mut self.reader().await?;
        let (runs, samples) = (leases::owned_runs(conn, worker).await?, leases::owned_samples(conn, worker).await?);
        let (runs, samples, ended) = {
            let queue = lock(&self.queue);
            let owned: BTreeSet<&RequestId> = samples.iter().map(|(id, _)| id).collect();
            let ended: Vec<_> = queue.sample_ids().into_iter().filter(|id| !owned.contains(id)).collect();
            let runs: Vec<_> = runs.into_iter().filter(|(run, _)| queue.next_seq(run).is_none()).collect();
            let samples: Vec<_> = samples.into_iter().filter(|(id, _)| !queue.has_sample(id)).collect();
            (runs, samples, ended)
        };
        let name = |id: &str, number: i64| format!("{id} {number}");
        let strays: BTreeSet<String> = runs
            .iter()
            .map(|(run, epoch)| name(run.as_str(), *epoch))
            .chain(samples.iter().map(|(id, claim)| name(id.as_str(), *claim)))
            .chain(ended.iter().map(|id| name(id.as_str(), GONE)))
            .collect();
        let before = std::mem::replace(&mut *lock(&self.strays), strays);
        for request in ended.into_iter().filter(|id| before.contains(&name(id.as_str(), GONE))) {
            tracing::info!(%request, "a sample that others have ended is given up");
            self.with_queue(|queue| queue.forget_sample(&request));
        }
        for (run, epoch) in runs.into_iter().filter(|(run, epoch)| before.contains(&name(run.as_str(), *epoch))) {
            tracing::info!(%run, epoch, "a lease that was lost on the way is given back");
            self.record(crate::leases::Release { run, epoch });
        }
        let lost: Vec<_> =
            samples.into_iter().filter(|(id, claim)| before.contains(&name(id.as_str(), *claim))).collect();
        if !lost.is_empty() {
            tracing::info!(samples = lost.len(), "samples that were lost on the way are given back");
            self.record(ReleaseSamples { samples: lost, quiet: false });
        }
        Ok(())
    }

    async fn load_run(self: &Arc<Self>, id: RunId, epoch: i64) -> Result<(), Error> {
        let conn = &mut self.reader().await?;
        let run = runs::run_row(conn, &id).await?;
        // Before its requests, which may all be accepted when it has ended.
        let status = sessions::session_status(conn, &run.session).await?;
        let done = run.snapshot.as_ref().map_or(0, |(seq, _)| seq + 1);
        let rows = requests::requests_of_run(conn, &id, done).await?;
        let snapshots = sampling::snapshots_of_run(conn, &id).await?;
        let session = run.session.clone();
        self.with_queue(|queue| {
            add_run(queue, &id, run, epoch, done, rows, snapshots);
            end_if_ended(queue, &session, &status);
        });
        // Who ended it meanwhile did not find the run here.
        let status = sessions::session_status(conn, &session).await?;
        self.end_session_here(&session, &status).await
    }

    async fn read_new_requests(self: &Arc<Self>, run: &RunId) -> Result<(), Error> {
        loop {
            let Some((from, cancelled)) = lock(&self.queue).reads_from(run) else { return Ok(()) };
            let rows = requests::requests_of_run(&mut self.reader().await?, run, from).await?;
            let read = self.with_queue(|queue| {
                // What was cancelled since must not be taken for waiting.
                let holds = queue.reads_from(run).is_some_and(|(_, now)| now == cancelled);
                if holds {
                    rows.into_iter().for_each(|row| add_request(queue, run, row));
                }
                holds
            });
            if read {
                return Ok(());
            }
        }
    }

    async fn claim_samples(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let (limit, paused) = lock(&self.queue).room_for_samples(HELD_SAMPLES, NEWCOMERS);
            let claimed = self.call(ClaimSamples { limit, paused }).await?;
            let count = claimed.len();
            let mut ended = BTreeSet::new();
            for sample in claimed {
                let (request, number) = (sample.id.clone(), sample.claim);
                match self.add_claimed(sample).await {
                    Ok(session) => drop(ended.insert(session)),
                    Err(error) => {
                        tracing::warn!(%request, %error, "a sample could not be read; it is given back");
                        self.record(ReleaseSamples { samples: vec![(request, number)], quiet: false });
                    }
                }
            }
            for session in ended {
                let status = sessions::session_status(&mut self.reader().await?, &session).await?;
                self.with_queue(|queue| end_if_ended(queue, &session, &status));
            }
            if count < limit {
                return Ok(());
            }
        }
    }

    async fn add_claimed(self: &Arc<Self>, row: ClaimedSample) -> Result<SessionId, Error> {
        let sampling = self.sampling_session(&row).await?;
        let session = sampling.session.clone();
        if sampling.snapshot_dir.is_none() && !lock(&self.queue).can_sample(&sampling) {
            // The store takes the run for this worker's, which knows nothing of it; that is found out soon.
            self.record(ReleaseSamples { samples: vec![(row.id, row.claim)], quiet: true });
            return Ok(session);
        }
        let ClaimedSample { arrival, id: request, tenant, seq_id, claim, cost, .. } = row;
        self.with_queue(|queue| {
            queue.add_sample(Claimed { arrival, request, tenant, seq_id, claim, cost, sampling }, None);
        });
        Ok(session)
    }

    async fn sampling_session(&self, row: &ClaimedSample) -> Result<Arc<SamplingSession>, Error> {
        // Where the weights of a snapshot are changes.
        let known = self.samplers.get(&row.tenant, &row.sampling_session);
        if let Some(known) = known.filter(|known| known.snapshot.is_none()) {
            return Ok(known);
        }
        let conn = &mut self.reader().await?;
        let found = Arc::new(sampling::sampling_session(conn, &row.tenant, &row.sampling_session).await?);
        self.samplers.put(row.tenant.clone(), Arc::clone(&found));
        Ok(found)
    }
}

fn add_run(
    queue: &mut Queue,
    id: &RunId,
    run: RunRow,
    epoch: i64,
    done: i64,
    rows: Vec<RequestRow>,
    snapshots: Vec<SnapshotRow>,
) {
    // Of a former lease that passed on unnoticed nothing may be taken for this one's.
    queue.lose_lease_before(id, epoch);
    let next_seq = first_unfinished(&rows, done);
    let lost = run.snapshot.is_some() || rows.iter().any(|row| row.replays);
    let history = if lost { History::Lost } else { History::Loaded };
    let model = run.spec.base_model;
    queue.add_run(id.clone(), RunQueue::new(run.tenant, run.session, model, epoch, next_seq, history));
    for snapshot in snapshots {
        queue.add_snapshot(&snapshot.session, snapshot.key, id.clone(), false);
    }
    if run.state == RunState::Failed {
        let failure = run.failure.unwrap_or_else(|| creation_failed(id, &OpError::server("unknown cause")));
        queue.fail_run(id, failure);
    }
    rows.into_iter().for_each(|row| add_request(queue, id, row));
}

fn add_request(queue: &mut Queue, run: &RunId, row: RequestRow) {
    if row.seq_id == 0 && row.state == RequestState::Cancelled {
        queue.fail_run(run, creation_failed(run, &session_ended()));
    }
    if row.state.is_terminal() {
        queue.consume(run, row.seq_id);
    } else {
        queue.park(run, row.seq_id, row.id, row.kind, row.cost, None);
    }
}

/// The first place in a run's order, from `done` on, whose request has not ended or not arrived.
fn first_unfinished(rows: &[RequestRow], done: i64) -> i64 {
    let mut next = done;
    for row in rows {
        if row.seq_id != next || !row.state.is_terminal() {
            break;
        }
        next += 1;
    }
    next
}

/// A session that has ended with work left goes on ending.
pub(crate) fn end_if_ended(queue: &mut Queue, session: &SessionId, status: &SessionStatus) {
    match status {
        SessionStatus::Active => {}
        SessionStatus::Finished { reason: FinishReason::Success, .. } => queue.end_session(session, false),
        SessionStatus::Finished { .. } => queue.end_session(session, true),
        SessionStatus::Expired => queue.suspend_session(session),
    }
}

/// Takes leases of runs, as many as are this worker's share.
struct ClaimRuns;

impl Write for ClaimRuns {
    type Output = Vec<(RunId, i64)>;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let Some(worker) = &core.options.worker else { return Ok(Vec::new()) };
        if !is_registered(conn, core).await? {
            return Ok(Vec::new());
        }
        let workers = workers::models_of_workers(conn, core.now()).await?;
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

/// Whether this process's worker may take anything: one that was taken for dead registers again first, and forgets
/// what it had.
async fn is_registered(conn: &mut Conn, core: &Core) -> Result<bool, Error> {
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

struct ClaimSamples {
    limit: usize,
    /// Tenants whose samples would only wait here.
    paused: Vec<TenantId>,
}

impl Write for ClaimSamples {
    type Output = Vec<ClaimedSample>;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        match &core.options.worker {
            Some(_) if !is_registered(conn, core).await? => Ok(Vec::new()),
            Some(worker) => leases::claim_samples(conn, &worker.id, &worker.models, self.limit, &self.paused).await,
            None => Ok(Vec::new()),
        }
    }
}
