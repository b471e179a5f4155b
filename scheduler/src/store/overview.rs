//! Statements for overviews of the service: waiting requests, failures and speed.

use std::collections::BTreeMap;

use trainyard_protocol::{RequestId, RunId, TenantId};

use super::db::{Conn, Row, column, sql, sql_by};
use super::runs::to_run;
use super::{as_i64, as_u64, failed, from_json, parsed};
use crate::{
    Error, FailedRequest, LOSS_PER_TOKEN, ListedRun, Page, QueuedRequests, RequestKind, RequestState, RunProgress,
    RunRequest, Timestamp, TokenRate, Tokens,
};

/// Returns the unfinished requests of all tenants.
pub(crate) async fn queued_by_tenant(conn: &mut Conn) -> Result<Vec<QueuedRequests>, Error> {
    const SQL: &str = "-- queued_by_tenant
        SELECT tenant, kind, state, count(*) AS open, min(created_at) AS oldest FROM requests
        WHERE finished_at IS NULL GROUP BY tenant, kind, state ORDER BY tenant, kind, state";
    let rows = sql(SQL).fetch_all(conn).await.map_err(failed("count requests"))?;
    let read = |row: &Row| {
        Ok(QueuedRequests {
            tenant: TenantId::new(column::<String>(row, "tenant")?),
            kind: parsed(row, "kind", RequestKind::from_text)?,
            state: parsed(row, "state", RequestState::from_text)?,
            count: as_u64(column(row, "open")?),
            oldest: Timestamp(column(row, "oldest")?),
        })
    };
    rows.iter().map(read).collect()
}

/// Returns the newest requests of a tenant that failed after a given time.
pub(crate) async fn failed_requests(
    conn: &mut Conn,
    tenant: &TenantId,
    after: Timestamp,
    limit: i64,
) -> Result<Vec<FailedRequest>, Error> {
    const SQL: &str = "-- failed_requests
        SELECT id, kind, run_id, finished_at, error FROM requests
        WHERE tenant = $1 AND state = 'failed' AND finished_at > $2 AND error IS NOT NULL
        ORDER BY finished_at DESC LIMIT $3";
    let rows = sql(SQL).bind(tenant.as_str()).bind(after.0).bind(limit).fetch_all(conn).await;
    let read = |row: &Row| {
        Ok(FailedRequest {
            id: RequestId::new(column::<String>(row, "id")?),
            kind: parsed(row, "kind", RequestKind::from_text)?,
            run: column::<Option<String>>(row, "run_id")?.map(RunId::new),
            at: Timestamp(column(row, "finished_at")?),
            error: from_json(row, "error")?,
        })
    };
    rows.map_err(failed("list failures"))?.iter().map(read).collect()
}

/// Columns of runs and of their sessions in listings.
macro_rules! listed {
    () => {
        "SELECT listed.id AS id, listed.tenant AS tenant, listed.session_id AS session_id, listed.spec AS spec,
            listed.state AS state, listed.user_metadata AS user_metadata, listed.created_at AS created_at,
            listed.last_request_at AS last_request_at, listed.corrupted AS corrupted,
            coalesce(listed.numerics_changes, '[]') AS numerics_changes, sessions.project_id AS project_id,
            sessions.tags AS tags, sessions.status AS status"
    };
}

fn to_listed(row: &Row) -> Result<ListedRun, Error> {
    Ok(ListedRun {
        run: to_run(row)?,
        project: column(row, "project_id")?,
        tags: from_json(row, "tags")?,
        active: column::<String>(row, "status")? == "active",
    })
}

/// Returns a page of a tenant's newest runs, with facts about their sessions.
pub(crate) async fn newest_runs(conn: &mut Conn, tenant: &TenantId, page: Page) -> Result<Vec<ListedRun>, Error> {
    const SQL: &str = concat!(
        "-- newest_runs
        ",
        listed!(),
        "
        FROM (SELECT * FROM runs WHERE tenant = $1 AND listed ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3)
            AS listed JOIN sessions ON sessions.id = listed.session_id
        ORDER BY listed.created_at DESC, listed.id DESC"
    );
    let statement = sql(SQL).bind(tenant.as_str()).bind(i64::from(page.limit)).bind(as_i64(page.offset));
    statement.fetch_all(conn).await.map_err(failed("list runs"))?.iter().map(to_listed).collect()
}

/// Returns one of a tenant's runs, with facts about its session.
pub(crate) async fn listed_run(conn: &mut Conn, tenant: &TenantId, run: &RunId) -> Result<ListedRun, Error> {
    const SQL: &str = concat!(
        "-- listed_run
        ",
        listed!(),
        "
        FROM runs AS listed JOIN sessions ON sessions.id = listed.session_id
        WHERE listed.id = $1 AND listed.tenant = $2"
    );
    let row = sql(SQL).bind(run.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    to_listed(&row.map_err(failed("find a run"))?.ok_or_else(|| Error::not_found("training run", run))?)
}

/// Returns the number of a tenant's runs, counted up to a bound.
pub(crate) async fn count_newest_runs(conn: &mut Conn, tenant: &TenantId, most: u32) -> Result<u64, Error> {
    const SQL: &str = "-- count_newest_runs
        SELECT count(*) FROM (
            SELECT 1 FROM runs WHERE tenant = $1 AND listed ORDER BY created_at DESC, id DESC LIMIT $2) AS newest";
    let count = sql(SQL).bind(tenant.as_str()).bind(i64::from(most)).scalar(conn).await;
    Ok(as_u64(count.map_err(failed("count runs"))?.unwrap_or(0)))
}

/// Returns the progress of each of some runs according to its newest metrics, in the order of the runs.
pub(crate) async fn progress_of_runs(
    conn: &mut Conn,
    tenant: &TenantId,
    runs: &[RunId],
) -> Result<Vec<RunProgress>, Error> {
    macro_rules! progress {
        ($wanted:literal) => {
            concat!(
                "-- progress_of_runs
        SELECT wanted.id AS id, (
                SELECT step + CASE WHEN kind = 'optim_step' THEN 1 ELSE 0 END FROM run_metrics
                WHERE run_id = wanted.id AND tenant = $2 ORDER BY step DESC, seq_id DESC LIMIT 1) AS steps, (
                SELECT metrics FROM (
                    SELECT step, seq_id, kind, metrics FROM run_metrics WHERE run_id = wanted.id AND tenant = $2
                    ORDER BY step DESC, seq_id DESC LIMIT 8) AS newest
                WHERE kind = 'forward_backward' ORDER BY step DESC, seq_id DESC LIMIT 1) AS metrics
        FROM ",
                $wanted
            )
        };
    }
    const SQLITE: &str = progress!("(SELECT value AS id FROM json_each($1)) AS wanted");
    const POSTGRES: &str = progress!("unnest($1) AS wanted (id)");
    let ids: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let rows = sql_by(SQLITE, POSTGRES).bind(ids).bind(tenant.as_str()).fetch_all(conn).await;
    let mut found = BTreeMap::new();
    for row in &rows.map_err(failed("read metrics"))? {
        let metrics: Option<String> = column(row, "metrics")?;
        let metrics: Option<BTreeMap<String, Option<f64>>> = match metrics {
            Some(_) => Some(from_json(row, "metrics")?),
            None => None,
        };
        let metric = |name: &str| metrics.as_ref().and_then(|metrics| metrics.get(name).copied().flatten());
        let progress = RunProgress {
            steps: as_u64(column::<Option<i64>>(row, "steps")?.unwrap_or(0)),
            loss: metric("loss:sum"),
            loss_per_token: metric(LOSS_PER_TOKEN),
        };
        found.insert(RunId::new(column::<String>(row, "id")?), progress);
    }
    Ok(runs.iter().map(|run| found.get(run).cloned().unwrap_or_default()).collect())
}

/// Returns the newest requests of a run.
pub(crate) async fn newest_requests(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
    limit: i64,
) -> Result<Vec<RunRequest>, Error> {
    const SQL: &str = "-- newest_requests
        SELECT id, seq_id, kind, state, tokens, created_at, finished_at, error FROM requests
        WHERE run_id = $1 AND tenant = $2 ORDER BY seq_id DESC LIMIT $3";
    let rows = sql(SQL).bind(run.as_str()).bind(tenant.as_str()).bind(limit).fetch_all(conn).await;
    let read = |row: &Row| {
        Ok(RunRequest {
            id: RequestId::new(column::<String>(row, "id")?),
            seq_id: column(row, "seq_id")?,
            kind: parsed(row, "kind", RequestKind::from_text)?,
            state: parsed(row, "state", RequestState::from_text)?,
            tokens: as_u64(column(row, "tokens")?),
            created_at: Timestamp(column(row, "created_at")?),
            finished_at: column::<Option<i64>>(row, "finished_at")?.map(Timestamp),
            error: match column::<Option<String>>(row, "error")? {
                Some(_) => Some(from_json(row, "error")?),
                None => None,
            },
        })
    };
    rows.map_err(failed("list requests"))?.iter().map(read).collect()
}

/// Returns the tokens of a tenant's requests that ended after a given time, in intervals of some ms, the oldest first.
pub(crate) async fn token_rates(
    conn: &mut Conn,
    tenant: &TenantId,
    after: Timestamp,
    stretch: i64,
) -> Result<Vec<TokenRate>, Error> {
    const SQL: &str = "-- token_rates
        SELECT at / $3 AS stretch, CAST(sum(trained) AS BIGINT) AS trained, CAST(sum(prefill) AS BIGINT) AS prefill,
            CAST(sum(cached) AS BIGINT) AS cached, CAST(sum(sampled) AS BIGINT) AS sampled
        FROM usage WHERE tenant = $1 AND at >= $2 GROUP BY at / $3 ORDER BY 1";
    let rows = sql(SQL).bind(tenant.as_str()).bind(after.0).bind(stretch).fetch_all(conn).await;
    let read = |row: &Row| {
        let count = |name| column(row, name).map(as_u64);
        Ok(TokenRate {
            from: Timestamp(column::<i64>(row, "stretch")?.saturating_mul(stretch)),
            tokens: Tokens {
                trained: count("trained")?,
                prefill: count("prefill")?,
                cached: count("cached")?,
                sampled: count("sampled")?,
            },
        })
    };
    rows.map_err(failed("read usage"))?.iter().map(read).collect()
}
