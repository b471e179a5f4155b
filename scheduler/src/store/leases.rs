//! Leases in the tables `runs` and `requests`: the worker of each run and each sample.

use trainyard_protocol::{RequestId, RunId};

use super::cancellations::is_cancelled;
use super::db::{Conn, Row, column, sql, sql_by};
use super::numerics::{StoredNumerics, may_execute, some_worker_equals};
use super::{as_i64, failed};
use crate::Error;
use crate::execution::crashes::{QUARANTINE_CRASHES, WorkerEnd};

/// Runs that unfinished requests wait for: their own, or those whose snapshots they need. The query starts from
/// unfinished requests, which are few among all retained ones; `CROSS JOIN` keeps SQLite from reversing that order.
macro_rules! waiting_runs {
    () => {
        concat!(
            "SELECT run_id AS id FROM requests WHERE finished_at IS NULL AND run_id IS NOT NULL AND NOT ",
            is_cancelled!("requests"),
            " UNION
            SELECT sampler.run_id FROM requests CROSS JOIN sampling_sessions AS sampler
            WHERE requests.finished_at IS NULL AND sampler.id = requests.sampling_session_id
                AND sampler.run_id IS NOT NULL AND sampler.snapshot_dir IS NULL AND NOT ",
            is_cancelled!("requests")
        )
    };
}

/// A run whose lease has been claimed.
pub(crate) struct ClaimedRun {
    pub(crate) id: RunId,
    /// Epoch of the new lease.
    pub(crate) epoch: i64,
    /// Recorded arithmetic of the run's results.
    pub(crate) arithmetic: Option<String>,
}

/// Assignments of a new lease: a run that no results bind is bound to its new worker's numerics.
macro_rules! lease_to {
    ($worker:literal) => {
        concat!(
            "worker_id = ",
            $worker,
            ", epoch = epoch + 1, weights = CASE WHEN state = 'ready' AND weights IS NOT NULL THEN weights ELSE (
                SELECT mine.weights FROM worker_numerics AS mine
                WHERE mine.worker_id = ",
            $worker,
            " AND mine.model = base_model) END,
            arithmetic = CASE WHEN state = 'ready' AND arithmetic IS NOT NULL THEN arithmetic ELSE (
                SELECT mine.arithmetic FROM worker_numerics AS mine
                WHERE mine.worker_id = ",
            $worker,
            " AND mine.model = base_model) END"
        )
    };
}

/// Claims the leases of at most `limit` runs that have work but no worker. Runs whose results were computed differently
/// from the worker are claimed only if it `continues` them.
pub(crate) async fn claim_runs(
    conn: &mut Conn,
    worker: &str,
    models: &[String],
    limit: usize,
    continues: bool,
) -> Result<Vec<ClaimedRun>, Error> {
    const SQLITE: &str = concat!(
        "-- claim_runs
        UPDATE runs SET ",
        lease_to!("$1"),
        "
        WHERE id IN (
            SELECT runs.id FROM (",
        waiting_runs!(),
        ") AS waiting CROSS JOIN runs
            WHERE runs.id = waiting.id AND runs.worker_id IS NULL
                AND runs.base_model IN (SELECT value FROM json_each($2)) AND ",
        may_execute!("$1", "$4"),
        "
            ORDER BY runs.last_request_at, runs.id LIMIT $3)
        RETURNING id, epoch, arithmetic"
    );
    // PostgreSQL executes a subquery of `ARRAY` once. As a join, it could lock more runs than the limit.
    const POSTGRES: &str = concat!(
        "-- claim_runs
        UPDATE runs SET ",
        lease_to!("$1"),
        "
        WHERE id = ANY(ARRAY(
            SELECT runs.id FROM (",
        waiting_runs!(),
        ") AS waiting CROSS JOIN runs
            WHERE runs.id = waiting.id AND runs.worker_id IS NULL AND runs.base_model = ANY($2) AND ",
        may_execute!("$1", "$4"),
        "
            ORDER BY runs.last_request_at, runs.id LIMIT $3 FOR UPDATE OF runs SKIP LOCKED))
        RETURNING id, epoch, arithmetic"
    );
    let rows = sql_by(SQLITE, POSTGRES)
        .bind(worker)
        .bind(models.to_vec())
        .bind(as_i64(limit as u64))
        .bind(continues)
        .fetch_all(conn)
        .await
        .map_err(failed("claim runs"))?;
    let claimed_run = |row: &Row| {
        let id = RunId::new(column::<String>(row, "id")?);
        Ok(ClaimedRun { id, epoch: column(row, "epoch")?, arithmetic: column(row, "arithmetic")? })
    };
    let mut claimed = rows.iter().map(claimed_run).collect::<Result<Vec<_>, Error>>()?;
    claimed.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(claimed)
}

/// Returns whether a worker has the lease of a run under this epoch, and keeps it so until the transaction ends.
pub(crate) async fn holds_run(conn: &mut Conn, worker: &str, run: &RunId, epoch: i64) -> Result<bool, Error> {
    const SQLITE: &str = "-- holds_run
        SELECT epoch FROM runs WHERE id = $1 AND worker_id = $2 AND epoch = $3";
    const POSTGRES: &str = "-- holds_run
        SELECT epoch FROM runs WHERE id = $1 AND worker_id = $2 AND epoch = $3 FOR SHARE";
    let held: Option<i64> = sql_by(SQLITE, POSTGRES)
        .bind(run.as_str())
        .bind(worker)
        .bind(epoch)
        .scalar(conn)
        .await
        .map_err(failed("check a lease"))?;
    Ok(held.is_some())
}

/// Releases the lease of a run. Returns false if it had passed to another worker.
pub(crate) async fn release_run(conn: &mut Conn, worker: &str, run: &RunId, epoch: i64) -> Result<bool, Error> {
    const SQL: &str = "-- release_run
        UPDATE runs SET worker_id = NULL WHERE id = $1 AND worker_id = $2 AND epoch = $3";
    const REQUESTS: &str = "-- release_run: requests
        UPDATE requests SET state = 'queued' WHERE run_id = $1 AND finished_at IS NULL AND state = 'running'";
    let released = sql(SQL).bind(run.as_str()).bind(worker).bind(epoch).execute(conn).await;
    if released.map_err(failed("release a run"))? == 0 {
        return Ok(false);
    }
    sql(REQUESTS).bind(run.as_str()).execute(conn).await.map_err(failed("release a run"))?;
    Ok(true)
}

/// Numbers of leases of runs and claims on samples that were freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreedLeases {
    pub(crate) runs: u64,
    pub(crate) samples: u64,
}

/// Frees all leases of a worker, or of all workers. After a crash, the crash count grows of every request that may have
/// been in execution: claimed samples, and the next request of each of the worker's runs.
pub(crate) async fn release_all(conn: &mut Conn, worker: Option<&str>, end: WorkerEnd) -> Result<FreedLeases, Error> {
    const ISOLATED: &str = "-- release_all: isolated
        UPDATE requests SET isolated_starts = isolated_starts + $2
        WHERE finished_at IS NULL AND state = 'running' AND isolated_starts > 0 AND crash_count >= $3
            AND (worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1) OR run_id IN (
                SELECT id FROM runs WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1)))";
    const HEADS: &str = "-- release_all: heads
        UPDATE requests SET crash_count = crash_count + $2
        WHERE finished_at IS NULL
            AND run_id IN (SELECT id FROM runs WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1))
            AND NOT EXISTS (SELECT 1 FROM requests AS earlier WHERE earlier.run_id = requests.run_id
                AND earlier.seq_id < requests.seq_id AND earlier.finished_at IS NULL)";
    const REQUESTS: &str = "-- release_all: requests
        UPDATE requests SET state = 'queued' WHERE finished_at IS NULL AND state = 'running' AND run_id IN (
            SELECT id FROM runs WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1))";
    const RUNS: &str = "-- release_all: runs
        UPDATE runs SET worker_id = NULL WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1)";
    const SAMPLES: &str = "-- release_all: samples
        UPDATE requests SET worker_id = NULL, state = 'queued', crash_count = crash_count + $2
        WHERE finished_at IS NULL AND worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1)";
    let crashed = end.crash_count();
    if end.isolated_starts() > 0 {
        let quarantined = i64::try_from(QUARANTINE_CRASHES).unwrap_or(i64::MAX);
        let isolated = sql(ISOLATED).bind(worker).bind(end.isolated_starts()).bind(quarantined);
        isolated.execute(conn).await.map_err(failed("release leases"))?;
    }
    if crashed > 0 {
        sql(HEADS).bind(worker).bind(crashed).execute(conn).await.map_err(failed("release leases"))?;
    }
    sql(REQUESTS).bind(worker).execute(conn).await.map_err(failed("release leases"))?;
    let runs = sql(RUNS).bind(worker).execute(conn).await.map_err(failed("release leases"))?;
    let samples = sql(SAMPLES).bind(worker).bind(crashed).execute(conn).await.map_err(failed("release leases"))?;
    Ok(FreedLeases { runs, samples })
}

/// Returns the runs whose leases a worker has, with their epochs.
pub(crate) async fn owned_runs(conn: &mut Conn, worker: &str) -> Result<Vec<(RunId, i64)>, Error> {
    const SQL: &str = "-- owned_runs
        SELECT id, epoch FROM runs WHERE worker_id = $1 ORDER BY id";
    let rows = sql(SQL).bind(worker).fetch_all(conn).await.map_err(failed("list leases"))?;
    rows.iter().map(|row| Ok((RunId::new(column::<String>(row, "id")?), column(row, "epoch")?))).collect()
}

/// Returns the unfinished samples that a worker has claimed, with the numbers of its claims.
pub(crate) async fn owned_samples(conn: &mut Conn, worker: &str) -> Result<Vec<(RequestId, i64)>, Error> {
    const SQL: &str = "-- owned_samples
        SELECT id, claim FROM requests WHERE worker_id = $1 AND finished_at IS NULL ORDER BY arrival";
    let rows = sql(SQL).bind(worker).fetch_all(conn).await.map_err(failed("list claims"))?;
    rows.iter().map(|row| Ok((RequestId::new(column::<String>(row, "id")?), column(row, "claim")?))).collect()
}

/// Releases the claim on a sample. Returns false if it has ended, or passed to another worker.
pub(crate) async fn release_sample(conn: &mut Conn, worker: &str, id: &RequestId, claim: i64) -> Result<bool, Error> {
    const SQL: &str = "-- release_sample
        UPDATE requests SET worker_id = NULL, state = 'queued'
        WHERE id = $1 AND worker_id = $2 AND claim = $3 AND finished_at IS NULL";
    let done = sql(SQL).bind(id.as_str()).bind(worker).bind(claim).execute(conn).await;
    Ok(done.map_err(failed("release a sample"))? == 1)
}

/// Returns how many runs of a base model the workers `alike` share: those whose lease they have, and those that wait
/// for a lease and that `worker`, one of them, may execute. Also returns how many leases `worker` has.
pub(crate) async fn count_placed_runs(
    conn: &mut Conn,
    model: &str,
    worker: &str,
    alike: &[String],
    continues: bool,
) -> Result<(usize, usize), Error> {
    macro_rules! text {
        ($held:literal) => {
            concat!(
                "-- count_placed_runs
        SELECT count(*) AS placed, count(CASE WHEN worker_id = $2 THEN 1 END) AS held FROM (
            SELECT worker_id FROM runs WHERE worker_id IS NOT NULL AND base_model = $1 AND ",
                $held,
                "
            UNION ALL
            SELECT runs.worker_id FROM (",
                waiting_runs!(),
                ") AS waiting CROSS JOIN runs
            WHERE runs.id = waiting.id AND runs.worker_id IS NULL AND runs.base_model = $1 AND ",
                may_execute!("$2", "$4"),
                ") AS placed"
            )
        };
    }
    const SQLITE: &str = text!("worker_id IN (SELECT value FROM json_each($3))");
    const POSTGRES: &str = text!("worker_id = ANY($3)");
    let count = sql_by(SQLITE, POSTGRES).bind(model).bind(worker).bind(alike.to_vec()).bind(continues);
    let rows = count.fetch_all(conn).await.map_err(failed("count runs"))?;
    let Some(row) = rows.first() else { return Ok((0, 0)) };
    let count = |name| Ok::<_, Error>(usize::try_from(column::<i64>(row, name)?).unwrap_or(0));
    Ok((count("placed")?, count("held")?))
}

/// A run that waits for a worker with its numerics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitingRun {
    pub(crate) run: RunId,
    pub(crate) model: String,
    pub(crate) recorded: StoredNumerics,
}

/// Returns the runs of a worker's base models that wait although it serves them, because no registered worker computes
/// as their results were computed.
pub(crate) async fn runs_of_other_numerics(
    conn: &mut Conn,
    worker: &str,
    models: &[String],
    continues: bool,
) -> Result<Vec<WaitingRun>, Error> {
    macro_rules! text {
        ($served:literal) => {
            concat!(
                "-- runs_of_other_numerics
        SELECT runs.id, runs.base_model, runs.weights, runs.arithmetic FROM (",
                waiting_runs!(),
                ") AS waiting CROSS JOIN runs
        WHERE runs.id = waiting.id AND runs.worker_id IS NULL AND ",
                $served,
                " AND NOT ",
                may_execute!("$1", "$3"),
                " AND NOT ",
                some_worker_equals!(),
                " ORDER BY runs.id"
            )
        };
    }
    const SQLITE: &str = text!("runs.base_model IN (SELECT value FROM json_each($2))");
    const POSTGRES: &str = text!("runs.base_model = ANY($2)");
    let rows = sql_by(SQLITE, POSTGRES).bind(worker).bind(models.to_vec()).bind(continues).fetch_all(conn).await;
    let waiting = |row: &Row| {
        let recorded = StoredNumerics::of(row)?.ok_or_else(|| Error::store("compare numerics", "none is recorded"))?;
        let run = RunId::new(column::<String>(row, "id")?);
        Ok(WaitingRun { run, model: column(row, "base_model")?, recorded })
    };
    rows.map_err(failed("compare numerics"))?.iter().map(waiting).collect()
}
