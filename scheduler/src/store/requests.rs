//! The table `requests`: accepts requests, and reads back those to be executed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use trainyard_protocol::{CheckpointKind, OpError, RequestId, RunId, SamplingSessionId, SessionId, TenantId};

use super::blobs::StoredBytes;
use super::db::{Bulk, Conn, Row, Sql, Value, column, sql, sql_by};
use super::{as_i64, as_u64, failed, parsed, to_json};
use crate::execution::crashes::CrashRecord;
use crate::quotas::Cost;
use crate::{Error, RequestKind, RequestState, Timestamp};

/// Target of a request; together with the seq_id it is the request's identity.
#[derive(Clone, Copy)]
pub(crate) enum RequestTarget<'a> {
    Run(&'a RunId),
    Sampling(&'a SamplingSessionId),
}

impl<'a> RequestTarget<'a> {
    fn run(&self) -> Option<&'a str> {
        match self {
            Self::Run(id) => Some(id.as_str()),
            Self::Sampling(_) => None,
        }
    }

    fn sampling(&self) -> Option<&'a str> {
        match self {
            Self::Run(_) => None,
            Self::Sampling(id) => Some(id.as_str()),
        }
    }
}

/// A new request for insertion.
pub(crate) struct NewRequest<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) tenant: &'a TenantId,
    pub(crate) session: &'a SessionId,
    pub(crate) target: RequestTarget<'a>,
    pub(crate) seq_id: i64,
    pub(crate) kind: RequestKind,
    pub(crate) num_samples: u32,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) payload: &'a StoredBytes,
    pub(crate) payload_bytes: usize,
    /// Error with which the request is refused: it is stored as failed.
    pub(crate) rejected: Option<&'a OpError>,
    /// Worker that claims a sample at once.
    pub(crate) worker: Option<&'a str>,
    pub(crate) tokens: u64,
    /// Kind of the checkpoint that the request writes; samples never write one.
    pub(crate) stores: Option<CheckpointKind>,
    /// Whether the request is a sample whose sequences training requests may name.
    pub(crate) recorded: bool,
}

/// Inserts a request and returns its place in the order of arrival. Returns `None` if its session no longer accepts
/// requests, if its snapshot was collected, or if a request of this identity exists.
pub(crate) async fn insert_request(
    conn: &mut Conn,
    new: &NewRequest<'_>,
    now: Timestamp,
) -> Result<Option<i64>, Error> {
    const SQL: &str = "-- insert_request
        INSERT INTO requests (id, tenant, session_id, run_id, sampling_session_id, seq_id, kind, num_samples,
            fingerprint, state, payload, payload_file, error, created_at, finished_at, worker_id, claim, tokens,
            recorded_at, stores, payload_bytes)
        SELECT $1, $2, id, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21
        FROM sessions WHERE id = $3 AND tenant = $2 AND status = 'active'
            AND ($5 IS NULL OR EXISTS (SELECT 1 FROM sampling_sessions WHERE id = $5 AND NOT collected))
        ON CONFLICT DO NOTHING RETURNING arrival";
    let mut values = new.values(now)?;
    values.push(new.stores.map(CheckpointKind::segment).into());
    values.push(as_i64(new.payload_bytes as u64).into());
    Sql::of(SQL, values).scalar(conn).await.map_err(failed("accept a request"))
}

/// Inserts several samples at once; see [`insert_request`]. Samples for which that would return `None` are missing from
/// the answer.
pub(crate) async fn insert_requests(
    conn: &mut Conn,
    new: &[NewRequest<'_>],
    now: Timestamp,
) -> Result<BTreeMap<RequestId, i64>, Error> {
    static SQL: LazyLock<Bulk> = LazyLock::new(|| {
        let text = "-- insert_requests
            INSERT INTO requests (id, tenant, session_id, run_id, sampling_session_id, seq_id, kind, num_samples,
                fingerprint, state, payload, payload_file, error, created_at, finished_at, worker_id, claim, tokens,
                recorded_at)
            SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11,
                column12, column13, column14, column15, column16, column17, column18, column19
            FROM ({rows}) AS new
            WHERE EXISTS (SELECT 1 FROM sessions WHERE id = column3 AND tenant = column2 AND status = 'active')
                AND EXISTS (SELECT 1 FROM sampling_sessions WHERE id = column5 AND NOT collected)
            ORDER BY column20
            ON CONFLICT DO NOTHING RETURNING id, arrival";
        Bulk::new(20, text)
    });
    let mut rows = Vec::with_capacity(new.len());
    for (place, request) in (0..).zip(new) {
        let mut values = request.values(now)?;
        values.push(Value::Int(Some(place)));
        rows.push(values);
    }
    let rows = SQL.fetch_all(conn, rows).await.map_err(failed("accept requests"))?;
    rows.iter().map(|row| Ok((RequestId::new(column::<String>(row, "id")?), column(row, "arrival")?))).collect()
}

impl<'a> NewRequest<'a> {
    /// Returns the parameters of the insertion.
    fn values(&self, now: Timestamp) -> Result<Vec<Value<'a>>, Error> {
        // Refused requests are never executed, so their payloads are not stored.
        let payload = self.rejected.is_none().then_some(self.payload);
        let state = if self.rejected.is_some() { RequestState::Failed } else { RequestState::Queued };
        Ok(vec![
            self.id.as_str().into(),
            self.tenant.as_str().into(),
            self.session.as_str().into(),
            self.target.run().into(),
            self.target.sampling().into(),
            self.seq_id.into(),
            self.kind.as_str().into(),
            i64::from(self.num_samples).into(),
            self.fingerprint.into(),
            state.as_str().into(),
            payload.and_then(StoredBytes::inline).into(),
            payload.and_then(StoredBytes::file).into(),
            self.rejected.map(to_json).transpose()?.into(),
            now.0.into(),
            self.rejected.map(|_| now.0).into(),
            self.worker.into(),
            i64::from(self.worker.is_some()).into(),
            as_i64(self.tokens).into(),
            self.recorded.then_some(now.0).into(),
        ])
    }
}

/// A request with the identity of a new one.
pub(crate) struct ExistingRequest {
    pub(crate) id: RequestId,
    pub(crate) arrival: i64,
    pub(crate) num_samples: u32,
    fingerprint: Vec<u8>,
}

impl ExistingRequest {
    /// Refuses a new request with other content.
    pub(crate) fn ensure_same(&self, fingerprint: &[u8], what: impl FnOnce() -> String) -> Result<(), Error> {
        if self.fingerprint == fingerprint {
            return Ok(());
        }
        Err(Error::Mismatch(format!("{} was submitted before with other content", what())))
    }
}

/// Returns the request with this identity, if it exists.
pub(crate) async fn find_request(
    conn: &mut Conn,
    tenant: &TenantId,
    target: RequestTarget<'_>,
    seq_id: i64,
) -> Result<Option<ExistingRequest>, Error> {
    const OF_RUN: &str = "-- find_request: of a run
        SELECT id, arrival, num_samples, fingerprint FROM requests WHERE run_id = $1 AND seq_id = $2 AND tenant = $3";
    const OF_SAMPLING: &str = "-- find_request: of a sampling session
        SELECT id, arrival, num_samples, fingerprint FROM requests
        WHERE sampling_session_id = $1 AND seq_id = $2 AND tenant = $3";
    let (text, id) = match target {
        RequestTarget::Run(id) => (OF_RUN, id.as_str()),
        RequestTarget::Sampling(id) => (OF_SAMPLING, id.as_str()),
    };
    let row = sql(text)
        .bind(id)
        .bind(seq_id)
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("find a request"))?;
    row.map(|row| {
        Ok(ExistingRequest {
            id: RequestId::new(column::<String>(&row, "id")?),
            arrival: column(&row, "arrival")?,
            num_samples: u32::try_from(column::<i64>(&row, "num_samples")?).unwrap_or(0),
            fingerprint: column(&row, "fingerprint")?,
        })
    })
    .transpose()
}

pub(crate) async fn request_kind(conn: &mut Conn, tenant: &TenantId, id: &RequestId) -> Result<RequestKind, Error> {
    const SQL: &str = "-- request_kind
        SELECT kind FROM requests WHERE id = $1 AND tenant = $2";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("find a request"))?
        .ok_or_else(|| Error::not_found("request", id))?;
    parsed(&row, "kind", RequestKind::from_text)
}

/// Returns the sessions of some requests, as far as these are samples.
pub(crate) async fn sessions_of_samples(conn: &mut Conn, ids: &[RequestId]) -> Result<Vec<SessionId>, Error> {
    const SQLITE: &str = "-- sessions_of_samples
        SELECT DISTINCT session_id FROM requests
        WHERE id IN (SELECT value FROM json_each($1)) AND sampling_session_id IS NOT NULL";
    const POSTGRES: &str = "-- sessions_of_samples
        SELECT DISTINCT session_id FROM requests WHERE id = ANY($1) AND sampling_session_id IS NOT NULL";
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let found: Vec<String> =
        sql_by(SQLITE, POSTGRES).bind(ids).scalars(conn).await.map_err(failed("find the sessions of samples"))?;
    Ok(found.into_iter().map(SessionId::new).collect())
}

/// Marks requests as running if the worker still has them. Returns how many of them were queued.
pub(crate) async fn start_requests(conn: &mut Conn, worker: &str, ids: &[RequestId]) -> Result<u64, Error> {
    const SQLITE: &str = "-- start_requests
        UPDATE requests SET state = 'running' WHERE state = 'queued' AND id IN (SELECT value FROM json_each($1))
            AND (worker_id = $2 OR run_id IN (SELECT id FROM runs WHERE worker_id = $2))";
    const POSTGRES: &str = "-- start_requests
        UPDATE requests SET state = 'running' WHERE state = 'queued' AND id = ANY($1)
            AND (worker_id = $2 OR EXISTS (SELECT 1 FROM runs WHERE runs.id = requests.run_id AND runs.worker_id = $2))";
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    sql_by(SQLITE, POSTGRES).bind(ids).bind(worker).execute(conn).await.map_err(failed("start requests"))
}

/// Counts an isolated start of a quarantined request, which is running from then on. After a crash, this identifies the
/// request that was executed in isolation.
pub(crate) async fn count_isolated_start(conn: &mut Conn, worker: &str, id: &RequestId) -> Result<(), Error> {
    const SQL: &str = "-- count_isolated_start
        UPDATE requests SET isolated_starts = isolated_starts + 1, state = 'running' WHERE id = $1 AND finished_at IS NULL
            AND (worker_id = $2 OR run_id IN (SELECT id FROM runs WHERE worker_id = $2))";
    sql(SQL).bind(id.as_str()).bind(worker).execute(conn).await.map_err(failed("count an isolated start"))?;
    Ok(())
}

/// A request without its payload, for recovery and replay.
pub(crate) struct RequestRow {
    pub(crate) id: RequestId,
    pub(crate) seq_id: i64,
    pub(crate) kind: RequestKind,
    pub(crate) state: RequestState,
    /// Whether the request is executed again after a restart.
    pub(crate) replays: bool,
    pub(crate) cost: Cost,
}

/// Returns the requests of a run from a position in its order on, in order.
pub(crate) async fn requests_of_run(conn: &mut Conn, run: &RunId, from: i64) -> Result<Vec<RequestRow>, Error> {
    const SQL: &str = "-- requests_of_run
        SELECT id, seq_id, kind, state, replays, tokens, created_at, crash_count, isolated_starts FROM requests
        WHERE run_id = $1 AND seq_id >= $2 ORDER BY seq_id";
    let rows = sql(SQL).bind(run.as_str()).bind(from).fetch_all(conn).await.map_err(failed("list requests"))?;
    rows.iter().map(to_request_row).collect()
}

/// Returns the numbers of unfinished samples, by tenant.
pub(crate) async fn open_samples(conn: &mut Conn) -> Result<BTreeMap<TenantId, u64>, Error> {
    const SQL: &str = "-- open_samples
        SELECT tenant, count(*) AS open FROM requests WHERE finished_at IS NULL AND run_id IS NULL GROUP BY tenant";
    let rows = sql(SQL).fetch_all(conn).await.map_err(failed("count samples"))?;
    let count = |row: &Row| Ok((TenantId::new(column::<String>(row, "tenant")?), as_u64(column(row, "open")?)));
    rows.iter().map(count).collect()
}

/// Returns those of the given requests that are unfinished.
pub(crate) async fn unfinished_of(conn: &mut Conn, ids: &[RequestId]) -> Result<BTreeSet<RequestId>, Error> {
    const SQLITE: &str = "-- unfinished_of
        SELECT id FROM requests WHERE id IN (SELECT value FROM json_each($1)) AND finished_at IS NULL";
    const POSTGRES: &str = "-- unfinished_of
        SELECT id FROM requests WHERE id = ANY($1) AND finished_at IS NULL";
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let found: Vec<String> =
        sql_by(SQLITE, POSTGRES).bind(ids).scalars(conn).await.map_err(failed("find ended requests"))?;
    Ok(found.into_iter().map(RequestId::new).collect())
}

/// Returns the keys of the in-memory snapshots that a save took.
pub(crate) async fn snapshots_of_request(conn: &mut Conn, id: &RequestId) -> Result<Vec<String>, Error> {
    const SQL: &str = "-- snapshots_of_request
        SELECT DISTINCT snapshot FROM sampling_sessions WHERE request_id = $1 AND snapshot IS NOT NULL";
    sql(SQL).bind(id.as_str()).scalars(conn).await.map_err(failed("list snapshots"))
}

/// Returns the location of a request's payload. The id comes from the queue, not from a client.
///
/// # Errors
/// `NotFound` if the payload was dropped: another worker has ended the request, or saved the run's state after it, and
/// this worker has yet to notice.
pub(crate) async fn payload_of_request(conn: &mut Conn, id: &RequestId) -> Result<StoredBytes, Error> {
    const SQL: &str = "-- payload_of_request
        SELECT payload, payload_file FROM requests WHERE id = $1";
    let row = sql(SQL)
        .bind(id.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("read a payload"))?
        .ok_or_else(|| Error::not_found("request", id))?;
    StoredBytes::from_columns(column(&row, "payload")?, column(&row, "payload_file")?)
        .ok_or_else(|| Error::not_found("payload of request", id))
}

fn to_request_row(row: &Row) -> Result<RequestRow, Error> {
    Ok(RequestRow {
        id: RequestId::new(column::<String>(row, "id")?),
        seq_id: column(row, "seq_id")?,
        kind: parsed(row, "kind", RequestKind::from_text)?,
        state: parsed(row, "state", RequestState::from_text)?,
        replays: column(row, "replays")?,
        cost: cost(row)?,
    })
}

/// Returns the properties of a request that scheduling and quotas need.
pub(super) fn cost(row: &Row) -> Result<Cost, Error> {
    Ok(Cost {
        tokens: as_u64(column(row, "tokens")?),
        accepted: Timestamp(column(row, "created_at")?),
        crashes: CrashRecord {
            count: as_u64(column(row, "crash_count")?),
            isolated_starts: as_u64(column(row, "isolated_starts")?),
        },
    })
}
