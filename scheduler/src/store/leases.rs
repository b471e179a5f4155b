//! Leases: which worker executes which run and which sample. In the tables `runs` and `requests`.

use trainyard_protocol::{RequestId, RunId};

use super::db::{Conn, column, sql, sql_by};
use super::{as_i64, failed};
use crate::Error;

/// Claims the leases of runs that no worker has and that have work, at most `limit`. Returns them with the new epochs.
pub(crate) async fn claim_runs(
    conn: &mut Conn,
    worker: &str,
    models: &[String],
    limit: usize,
) -> Result<Vec<(RunId, i64)>, Error> {
    const SQLITE: &str = "-- claim_runs
        UPDATE runs SET worker_id = $1, epoch = epoch + 1
        WHERE id IN (
            SELECT runs.id FROM runs
            WHERE runs.worker_id IS NULL AND runs.base_model IN (SELECT value FROM json_each($2))
                AND (EXISTS (SELECT 1 FROM requests WHERE requests.run_id = runs.id AND requests.finished_at IS NULL)
                    OR EXISTS (SELECT 1 FROM sampling_sessions AS sampler
                        JOIN requests ON requests.sampling_session_id = sampler.id AND requests.finished_at IS NULL
                        WHERE sampler.run_id = runs.id AND sampler.snapshot_dir IS NULL))
            ORDER BY runs.last_request_at, runs.id LIMIT $3)
        RETURNING id, epoch";
    // The waited-for runs are found by what is unfinished, which is little beside all runs.
    const POSTGRES: &str = "-- claim_runs
        UPDATE runs SET worker_id = $1, epoch = epoch + 1
        WHERE id IN (
            SELECT id FROM runs
            WHERE worker_id IS NULL AND base_model = ANY($2) AND id IN (
                SELECT run_id FROM requests WHERE finished_at IS NULL AND run_id IS NOT NULL
                UNION
                SELECT sampler.run_id FROM sampling_sessions AS sampler
                JOIN requests ON requests.sampling_session_id = sampler.id
                WHERE requests.finished_at IS NULL AND sampler.run_id IS NOT NULL AND sampler.snapshot_dir IS NULL)
            ORDER BY last_request_at, id LIMIT $3 FOR UPDATE SKIP LOCKED)
        RETURNING id, epoch";
    let rows = sql_by(SQLITE, POSTGRES)
        .bind(worker)
        .bind(models.to_vec())
        .bind(as_i64(limit as u64))
        .fetch_all(conn)
        .await
        .map_err(failed("claim runs"))?;
    let mut claimed: Vec<(RunId, i64)> = rows
        .iter()
        .map(|row| Ok((RunId::new(column::<String>(row, "id")?), column(row, "epoch")?)))
        .collect::<Result<_, Error>>()?;
    claimed.sort_unstable();
    Ok(claimed)
}

/// Whether a worker has the lease of a run under this epoch; keeps it so until the transaction ends.
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

/// Releases the lease of a run. False when it had passed to another worker.
pub(crate) async fn release_run(conn: &mut Conn, worker: &str, run: &RunId, epoch: i64) -> Result<bool, Error> {
    const SQL: &str = "-- release_run
        UPDATE runs SET worker_id = NULL WHERE id = $1 AND worker_id = $2 AND epoch = $3";
    const REQUESTS: &str = "-- release_run: requests
        UPDATE requests SET state = 'queued' WHERE run_id = $1 AND state = 'running'";
    let released = sql(SQL).bind(run.as_str()).bind(worker).bind(epoch).execute(conn).await;
    if released.map_err(failed("release a run"))? == 0 {
        return Ok(false);
    }
    sql(REQUESTS).bind(run.as_str()).execute(conn).await.map_err(failed("release a run"))?;
    Ok(true)
}

/// How many leases of runs and claims on samples were freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreedLeases {
    pub(crate) runs: u64,
    pub(crate) samples: u64,
}

/// Frees all leases of a worker, or of all workers. When it has `crashed`, the crash count grows of every request that it
/// may have been executing: claimed samples, and the next one of each of its runs.
pub(crate) async fn release_all(conn: &mut Conn, worker: Option<&str>, crashed: bool) -> Result<FreedLeases, Error> {
    const HEADS: &str = "-- release_all: heads
        UPDATE requests SET crash_count = crash_count + 1
        WHERE finished_at IS NULL
            AND run_id IN (SELECT id FROM runs WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1))
            AND NOT EXISTS (SELECT 1 FROM requests AS earlier WHERE earlier.run_id = requests.run_id
                AND earlier.seq_id < requests.seq_id AND earlier.finished_at IS NULL)";
    const REQUESTS: &str = "-- release_all: requests
        UPDATE requests SET state = 'queued' WHERE state = 'running' AND run_id IN (
            SELECT id FROM runs WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1))";
    const RUNS: &str = "-- release_all: runs
        UPDATE runs SET worker_id = NULL WHERE worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1)";
    const SAMPLES: &str = "-- release_all: samples
        UPDATE requests SET worker_id = NULL, state = 'queued', crash_count = crash_count + $2
        WHERE finished_at IS NULL AND worker_id IS NOT NULL AND ($1 IS NULL OR worker_id = $1)";
    if crashed {
        sql(HEADS).bind(worker).execute(conn).await.map_err(failed("release leases"))?;
    }
    sql(REQUESTS).bind(worker).execute(conn).await.map_err(failed("release leases"))?;
    let runs = sql(RUNS).bind(worker).execute(conn).await.map_err(failed("release leases"))?;
    let samples =
        sql(SAMPLES).bind(worker).bind(i64::from(crashed)).execute(conn).await.map_err(failed("release leases"))?;
    Ok(FreedLeases { runs, samples })
}

/// The runs whose leases a worker has, with their epochs.
pub(crate) async fn owned_runs(conn: &mut Conn, worker: &str) -> Result<Vec<(RunId, i64)>, Error> {
    const SQL: &str = "-- owned_runs
        SELECT id, epoch FROM runs WHERE worker_id = $1 ORDER BY id";
    let rows = sql(SQL).bind(worker).fetch_all(conn).await.map_err(failed("list leases"))?;
    rows.iter().map(|row| Ok((RunId::new(column::<String>(row, "id")?), column(row, "epoch")?))).collect()
}

/// The samples that a worker has claimed and not ended, with the numbers of its claims.
pub(crate) async fn owned_samples(conn: &mut Conn, worker: &str) -> Result<Vec<(RequestId, i64)>, Error> {
    const SQL: &str = "-- owned_samples
        SELECT id, claim FROM requests WHERE worker_id = $1 AND finished_at IS NULL ORDER BY arrival";
    let rows = sql(SQL).bind(worker).fetch_all(conn).await.map_err(failed("list claims"))?;
    rows.iter().map(|row| Ok((RequestId::new(column::<String>(row, "id")?), column(row, "claim")?))).collect()
}

/// Releases the claim on a sample. False when it has ended, or passed to another worker.
pub(crate) async fn release_sample(conn: &mut Conn, worker: &str, id: &RequestId, claim: i64) -> Result<bool, Error> {
    const SQL: &str = "-- release_sample
        UPDATE requests SET worker_id = NULL, state = 'queued'
        WHERE id = $1 AND worker_id = $2 AND claim = $3 AND finished_at IS NULL";
    let done = sql(SQL).bind(id.as_str()).bind(worker).bind(claim).execute(conn).await;
    Ok(done.map_err(failed("release a sample"))? == 1)
}

/// How many runs with a lease, or waited for without one, need a base model; and of how many the worker has the lease.
pub(crate) async fn count_placed_runs(conn: &mut Conn, model: &str, worker: &str) -> Result<(usize, usize), Error> {
    const SQLITE: &str = "-- count_placed_runs
        SELECT count(*) AS placed, count(CASE WHEN worker_id = $2 THEN 1 END) AS held FROM runs WHERE base_model = $1
            AND (worker_id IS NOT NULL
                OR EXISTS (SELECT 1 FROM requests WHERE requests.run_id = runs.id AND requests.finished_at IS NULL)
                OR EXISTS (SELECT 1 FROM sampling_sessions AS sampler
                    JOIN requests ON requests.sampling_session_id = sampler.id AND requests.finished_at IS NULL
                    WHERE sampler.run_id = runs.id AND sampler.snapshot_dir IS NULL))";
    const POSTGRES: &str = "-- count_placed_runs
        SELECT count(*) AS placed, count(CASE WHEN worker_id = $2 THEN 1 END) AS held FROM runs WHERE base_model = $1
            AND (worker_id IS NOT NULL
                OR id IN (
                    SELECT run_id FROM requests WHERE finished_at IS NULL AND run_id IS NOT NULL
                    UNION
                    SELECT sampler.run_id FROM sampling_sessions AS sampler
                    JOIN requests ON requests.sampling_session_id = sampler.id
                    WHERE requests.finished_at IS NULL AND sampler.run_id IS NOT NULL
                        AND sampler.snapshot_dir IS NULL))";
    let rows = sql_by(SQLITE, POSTGRES).bind(model).bind(worker).fetch_all(conn).await.map_err(failed("count runs"))?;
    let Some(row) = rows.first() else { return Ok((0, 0)) };
    let count = |name| Ok::<_, Error>(usize::try_from(column::<i64>(row, name)?).unwrap_or(0));
    Ok((count("placed")?, count("held")?))
}
