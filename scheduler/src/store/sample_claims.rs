//! Claims on samples, in the table `requests`.

use trainyard_protocol::{RequestId, SamplingSessionId, SessionId, TenantId};

use super::cancellations::is_cancelled;
use super::db::{Conn, Row, column, sql_by};
use super::numerics::may_execute;
use super::requests::cost;
use super::{as_i64, failed};
use crate::Error;
use crate::quotas::Cost;

/// A sample that a worker has claimed.
pub(crate) struct ClaimedSampleRow {
    pub(crate) arrival: i64,
    pub(crate) id: RequestId,
    pub(crate) tenant: TenantId,
    pub(crate) seq_id: i64,
    pub(crate) claim: i64,
    pub(crate) cost: Cost,
    /// Number of completions that the sample asks for.
    pub(crate) sequences: usize,
    pub(crate) sampling_session: SamplingSessionId,
}

/// Selection of the samples that a worker claims.
pub(crate) struct SampleClaim<'a> {
    pub(crate) worker: &'a str,
    pub(crate) models: &'a [String],
    /// Whether to claim samples that any worker with their base model can execute, or those whose weights only this one
    /// has in memory.
    pub(crate) movable: bool,
    /// Number of sequences to claim.
    pub(crate) limit: usize,
    /// Number of sequences of sessions that are not `waiting`, regardless of the limit.
    pub(crate) newcomers: usize,
    /// Sessions with samples that already wait at the worker: other sessions come first.
    pub(crate) waiting: &'a [SessionId],
    /// Tenants whose samples are not claimed.
    pub(crate) paused: &'a [TenantId],
    /// Whether to claim samples of runs whose results were computed differently, too.
    pub(crate) continues: bool,
}

/// Claims samples without a worker. Tenants take turns, and so do the sessions of a tenant; within a session the oldest
/// sample is first.
pub(crate) async fn claim_samples(conn: &mut Conn, claim: &SampleClaim<'_>) -> Result<Vec<ClaimedSampleRow>, Error> {
    // Otherwise SQLite would read all retained requests for the order within sessions.
    const SQLITE: &str = concat!(
        "-- claim_samples
        UPDATE requests SET worker_id = $1, claim = claim + 1
        WHERE arrival IN (
            SELECT arrival FROM (
                SELECT arrival, newcomer,
                    sum(num_samples) OVER (ORDER BY newcomer DESC, turn, arrival) - num_samples AS before
                FROM (
                    SELECT arrival, num_samples, newcomer,
                        row_number() OVER (PARTITION BY tenant ORDER BY newcomer DESC, session_turn, arrival) AS turn
                    FROM (
                        SELECT request.arrival, request.tenant, request.num_samples,
                            request.session_id NOT IN (SELECT value FROM json_each($7)) AS newcomer,
                            row_number() OVER (PARTITION BY request.session_id ORDER BY request.arrival) AS session_turn
                        FROM requests AS request INDEXED BY requests_unfinished
                        CROSS JOIN sampling_sessions AS sampler ON sampler.id = request.sampling_session_id
                        LEFT JOIN runs ON runs.id = sampler.run_id
                        WHERE request.finished_at IS NULL AND request.worker_id IS NULL
                            AND request.tenant NOT IN (SELECT value FROM json_each($4))
                            AND sampler.base_model IN (SELECT value FROM json_each($2))
                            AND (sampler.run_id IS NULL OR sampler.snapshot_dir IS NOT NULL) = $5
                            AND ($5 OR runs.worker_id = $1) AND NOT ",
        is_cancelled!("request"),
        " AND ",
        may_execute!("$1", "$8"),
        ")))
            WHERE before < $3 OR (newcomer AND before < $6))
        RETURNING arrival, id, tenant, seq_id, claim, tokens, created_at, crash_count, isolated_starts, num_samples,
            sampling_session_id"
    );
    // PostgreSQL executes a subquery of `ARRAY` once. As a join, it would compute the order again for each row.
    const POSTGRES: &str = concat!(
        "-- claim_samples
        UPDATE requests SET worker_id = $1, claim = claim + 1
        WHERE arrival = ANY(ARRAY(
            SELECT arrival FROM requests WHERE worker_id IS NULL AND finished_at IS NULL AND arrival = ANY(ARRAY(
                SELECT arrival FROM (
                    SELECT arrival, newcomer,
                        CAST(sum(num_samples) OVER (ORDER BY newcomer DESC, turn, arrival) - num_samples AS BIGINT)
                            AS before
                    FROM (
                        SELECT arrival, num_samples, newcomer,
                            row_number() OVER (PARTITION BY tenant ORDER BY newcomer DESC, session_turn, arrival) AS turn
                        FROM (
                            SELECT request.arrival, request.tenant, request.num_samples,
                                NOT (request.session_id = ANY($7)) AS newcomer,
                                row_number() OVER (PARTITION BY request.session_id ORDER BY request.arrival)
                                    AS session_turn
                            FROM requests AS request
                            JOIN sampling_sessions AS sampler ON sampler.id = request.sampling_session_id
                            LEFT JOIN runs ON runs.id = sampler.run_id
                            WHERE request.finished_at IS NULL AND request.worker_id IS NULL
                                AND NOT (request.tenant = ANY($4)) AND sampler.base_model = ANY($2)
                                AND (sampler.run_id IS NULL OR sampler.snapshot_dir IS NOT NULL) = $5
                                AND ($5 OR runs.worker_id = $1) AND NOT ",
        is_cancelled!("request"),
        " AND ",
        may_execute!("$1", "$8"),
        "
                            ) AS by_session
                        ) AS by_tenant
                    ) AS waiting
                WHERE before < $3 OR (newcomer AND before < $6)))
            FOR UPDATE SKIP LOCKED))
        RETURNING arrival, id, tenant, seq_id, claim, tokens, created_at, crash_count, isolated_starts, num_samples,
            sampling_session_id"
    );
    let rows = sql_by(SQLITE, POSTGRES)
        .bind(claim.worker)
        .bind(claim.models.to_vec())
        .bind(as_i64(claim.limit as u64))
        .bind(claim.paused.iter().map(ToString::to_string).collect::<Vec<_>>())
        .bind(claim.movable)
        .bind(as_i64(claim.newcomers as u64))
        .bind(claim.waiting.iter().map(ToString::to_string).collect::<Vec<_>>())
        .bind(claim.continues)
        .fetch_all(conn)
        .await
        .map_err(failed("claim samples"))?;
    let mut claimed = rows
        .iter()
        .map(|row| {
            Ok(ClaimedSampleRow {
                arrival: column(row, "arrival")?,
                id: RequestId::new(column::<String>(row, "id")?),
                tenant: TenantId::new(column::<String>(row, "tenant")?),
                seq_id: column(row, "seq_id")?,
                claim: column(row, "claim")?,
                cost: cost(row)?,
                sequences: sequences(row, "num_samples")?,
                sampling_session: SamplingSessionId::new(column::<String>(row, "sampling_session_id")?),
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    claimed.sort_unstable_by_key(|sample| sample.arrival);
    Ok(claimed)
}

/// Numbers of sequences of unfinished samples that any of several workers can execute.
pub(crate) struct OpenSequences {
    pub(crate) model: String,
    /// Whether the samples use snapshots of runs, which only workers with the run's numerics can execute; any worker
    /// with the base model can execute the others.
    pub(crate) of_runs: bool,
    pub(crate) all: usize,
    /// Sequences of samples that the worker has claimed.
    pub(crate) held: usize,
    /// Sequences of samples that no worker has claimed.
    pub(crate) unclaimed: usize,
    /// Unclaimed sequences of tenants that are not paused.
    pub(crate) claimable: usize,
}

/// Counts, by base model and kind, the sequences of samples that a worker can execute; it claims none of tenants that
/// are `paused`.
pub(crate) async fn open_sequences(
    conn: &mut Conn,
    worker: &str,
    models: &[String],
    paused: &[TenantId],
    continues: bool,
) -> Result<Vec<OpenSequences>, Error> {
    macro_rules! text {
        ($served:literal, $paused:literal) => {
            concat!(
                "-- open_sequences
        SELECT sampler.base_model, sampler.run_id IS NOT NULL AS of_runs,
            CAST(sum(request.num_samples) AS BIGINT) AS open,
            CAST(sum(CASE WHEN request.worker_id = $1 THEN request.num_samples ELSE 0 END) AS BIGINT) AS held,
            CAST(sum(CASE WHEN request.worker_id IS NULL THEN request.num_samples ELSE 0 END) AS BIGINT) AS unclaimed,
            CAST(sum(CASE WHEN request.worker_id IS NULL AND NOT (",
                $paused,
                ") THEN request.num_samples ELSE 0 END) AS BIGINT) AS claimable
        FROM requests AS request JOIN sampling_sessions AS sampler ON sampler.id = request.sampling_session_id
        LEFT JOIN runs ON runs.id = sampler.run_id
        WHERE request.finished_at IS NULL AND ",
                $served,
                " AND (sampler.run_id IS NULL OR sampler.snapshot_dir IS NOT NULL) AND NOT ",
                is_cancelled!("request"),
                " AND ",
                may_execute!("$1", "$3"),
                " GROUP BY sampler.base_model, sampler.run_id IS NOT NULL"
            )
        };
    }
    const SQLITE: &str = text!(
        "sampler.base_model IN (SELECT value FROM json_each($2))",
        "request.tenant IN (SELECT value FROM json_each($4))"
    );
    const POSTGRES: &str = text!("sampler.base_model = ANY($2)", "request.tenant = ANY($4)");
    let paused: Vec<String> = paused.iter().map(ToString::to_string).collect();
    let query = sql_by(SQLITE, POSTGRES).bind(worker).bind(models.to_vec()).bind(continues).bind(paused);
    let rows = query.fetch_all(conn).await.map_err(failed("count samples"))?;
    let open = |row: &Row| {
        let count = |name| sequences(row, name);
        let (model, of_runs) = (column(row, "base_model")?, column(row, "of_runs")?);
        let [all, held] = [count("open")?, count("held")?];
        let [unclaimed, claimable] = [count("unclaimed")?, count("claimable")?];
        Ok(OpenSequences { model, of_runs, all, held, unclaimed, claimable })
    };
    rows.iter().map(open).collect()
}

fn sequences(row: &Row, name: &'static str) -> Result<usize, Error> {
    Ok(usize::try_from(column::<i64>(row, name)?).unwrap_or(0))
}
