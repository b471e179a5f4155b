//! The table `requests`: ends requests, and reads their results.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use trainyard_protocol::{OpError, RequestId, RunId, SamplingSessionId, TenantId};

use super::blobs::StoredBytes;
use super::db::{Bulk, Conn, Dialect, Row, Sql, Value, column, sql, sql_by};
use super::{as_i64, as_u64, failed, from_json, parsed, run_metrics, to_json};
use crate::{CompletionItem, Completions, Encoding, Error, RequestKind, RequestState, Timestamp};

/// Maximum number of events in one answer.
const EVENTS_PER_ANSWER: i64 = 1000;
/// Distance between the first sample numbers of two clones of a sampling client.
pub(super) const CLONE_STRIDE: i64 = 1_000_000_000;

/// Outcome with which a request ends.
pub(crate) enum RequestEnd<'a> {
    /// The request succeeded; training requests have metrics, as JSON.
    Succeeded {
        encoding: Encoding,
        result: &'a StoredBytes,
        size: u64,
        replays: bool,
        metrics: Option<&'a str>,
    },
    Failed(&'a OpError),
    Cancelled,
}

impl RequestEnd<'_> {
    fn state(&self) -> RequestState {
        match self {
            Self::Succeeded { .. } => RequestState::Succeeded,
            Self::Failed(_) => RequestState::Failed,
            Self::Cancelled => RequestState::Cancelled,
        }
    }

    fn replays(&self) -> bool {
        matches!(self, Self::Succeeded { replays: true, .. })
    }

    fn metrics(&self) -> Option<&str> {
        match self {
            Self::Succeeded { metrics, .. } => *metrics,
            Self::Failed(_) | Self::Cancelled => None,
        }
    }

    /// Returns the first parameters of the statement that writes the end.
    fn values<'v>(&'v self, id: &'v RequestId, now: Timestamp) -> Result<Vec<Value<'v>>, Error> {
        let (encoding, result, size, error) = match self {
            Self::Succeeded { encoding, result, size, .. } => (Some(*encoding), Some(*result), *size, None),
            Self::Failed(error) => (None, None, 0, Some(*error)),
            Self::Cancelled => (None, None, 0, None),
        };
        Ok(vec![
            id.as_str().into(),
            self.state().as_str().into(),
            encoding.map(Encoding::as_str).into(),
            result.and_then(StoredBytes::inline).into(),
            result.and_then(StoredBytes::file).into(),
            as_i64(size).into(),
            error.map(to_json).transpose()?.into(),
            self.replays().into(),
            now.0.into(),
        ])
    }
}

pub(crate) struct EndedRequest {
    pub(crate) tenant: TenantId,
    pub(crate) kind: RequestKind,
    pub(crate) state: RequestState,
    pub(crate) tokens: u64,
    /// File of the payload, which has become unneeded.
    pub(crate) unneeded: Option<String>,
    /// Sampling session and clone of a sample.
    pub(crate) sample: Option<(SamplingSessionId, i64)>,
    pub(crate) run: Option<RunId>,
    /// Reason if the request failed.
    pub(crate) failure: Option<OpError>,
    /// Run that the request was to create.
    pub(crate) creates: Option<RunId>,
}

impl EndedRequest {
    /// Adds the reason of a failure.
    fn because_of(self, end: &RequestEnd<'_>) -> Self {
        match end {
            RequestEnd::Failed(error) => Self { failure: Some((*error).clone()), ..self },
            RequestEnd::Succeeded { .. } | RequestEnd::Cancelled => self,
        }
    }
}

/// Ends a request that waits or runs. Returns `None` if it has already ended.
///
/// A sample is ended under a `claim` (worker and number): nothing happens if another worker has it.
pub(crate) async fn end_request(
    conn: &mut Conn,
    id: &RequestId,
    end: &RequestEnd<'_>,
    claim: Option<(&str, i64)>,
    now: Timestamp,
) -> Result<Option<EndedRequest>, Error> {
    // Nearly all payloads are in their row. An update can't return a file name that it clears.
    if let Some(ended) = write_end(conn, id, end, claim, None, now).await? {
        return Ok(Some(ended));
    }
    let Some(file) = open_payload(conn, id, claim).await? else { return Ok(None) };
    let ended = match file {
        Some(file) => write_end(conn, id, end, claim, Some(file), now).await?,
        None => None,
    };
    ended.map(Some).ok_or_else(|| Error::store("end a request", format!("request {id} was not started")))
}

/// Returns the payload's file of an unfinished request, if it has one.
async fn open_payload(
    conn: &mut Conn,
    id: &RequestId,
    claim: Option<(&str, i64)>,
) -> Result<Option<Option<String>>, Error> {
    const SQL: &str = "-- open_payload
        SELECT payload_file FROM requests WHERE id = $1 AND finished_at IS NULL
            AND ($2 IS NULL OR (worker_id = $2 AND claim = $3))";
    let (worker, number) = claim.unzip();
    sql(SQL).bind(id.as_str()).bind(worker).bind(number).scalar(conn).await.map_err(failed("find a request"))
}

/// Ends a request whose payload is in this file, or in its row. Returns `None` if the request is unknown or has ended. A sample
/// gets the next number among the finished ones of its clone.
async fn write_end(
    conn: &mut Conn,
    id: &RequestId,
    end: &RequestEnd<'_>,
    claim: Option<(&str, i64)>,
    payload_file: Option<String>,
    now: Timestamp,
) -> Result<Option<EndedRequest>, Error> {
    // Only running requests can succeed; waiting ones can fail or be cancelled too.
    macro_rules! update {
        () => {
            "UPDATE requests SET state = $2, encoding = $3, result = $4, result_file = $5, result_size = $6, error = $7,
            replays = $8, finished_at = $9,
            payload = CASE WHEN $8 THEN payload END, payload_file = CASE WHEN $8 THEN payload_file END,
            clone = CASE WHEN sampling_session_id IS NOT NULL THEN seq_id / $10 END,
            event = CASE WHEN sampling_session_id IS NOT NULL THEN (
                SELECT coalesce(max(earlier.event), 0) + 1 FROM requests AS earlier
                WHERE earlier.sampling_session_id = requests.sampling_session_id
                    AND earlier.clone = requests.seq_id / $10 AND earlier.event IS NOT NULL) END
        WHERE id = $1 AND (state = 'running' OR (state = 'queued' AND $2 <> 'succeeded')) AND payload_file IS NOT DISTINCT FROM $11
            AND ($12 IS NULL OR (worker_id = $12 AND claim = $13))
        RETURNING run_id, sampling_session_id, seq_id, tenant, kind, tokens"
        };
    }
    const SQL: &str = concat!(
        "-- write_end
        ",
        update!()
    );
    // One round trip for both. SQLite does not support updates within queries, but has no round trips.
    const WITH_METRICS: &str = concat!(
        "-- write_end: metrics
        WITH ended AS (",
        update!(),
        "), recorded AS (
            INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)
            SELECT run_id, coalesce((
                SELECT step + CASE WHEN kind = 'optim_step' THEN 1 ELSE 0 END FROM run_metrics
                WHERE run_id = ended.run_id ORDER BY step DESC, seq_id DESC LIMIT 1), 0), seq_id, tenant, kind, $9, $14
            FROM ended)
        SELECT run_id, sampling_session_id, seq_id, tenant, kind, tokens FROM ended"
    );
    let (worker, number) = claim.unzip();
    let mut values = end.values(id, now)?;
    values.extend([CLONE_STRIDE.into(), payload_file.as_deref().into(), worker.into(), number.into()]);
    let statement = match end.metrics().filter(|_| conn.dialect() == Dialect::Postgres) {
        Some(metrics) => Sql::of(WITH_METRICS, values).bind(metrics),
        None => Sql::of(SQL, values),
    };
    let row = statement.fetch_optional(conn).await.map_err(failed("end a request"))?;
    let unneeded = payload_file.filter(|_| !end.replays());
    let Some(row) = row else { return Ok(None) };
    let ended = to_ended(&row, end.state(), unneeded)?.because_of(end);
    if let (Some(metrics), Some(run), Dialect::Sqlite) = (end.metrics(), &ended.run, conn.dialect()) {
        let seq_id = column(&row, "seq_id")?;
        run_metrics::insert_metrics(conn, &ended.tenant, run, seq_id, ended.kind, metrics, now).await?;
    }
    Ok(Some(ended))
}

/// A sample to end, with its claim.
pub(crate) struct SampleEnd<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) end: RequestEnd<'a>,
    pub(crate) claim: (&'a str, i64),
    pub(crate) session: &'a SamplingSessionId,
    pub(crate) seq_id: i64,
}

/// Ends several samples in their order; see [`end_request`]. Samples missing from the answer did not end by this: they
/// had already ended, another worker has them, or their payload is in a file.
pub(crate) async fn end_samples(
    conn: &mut Conn,
    samples: &[SampleEnd<'_>],
    now: Timestamp,
) -> Result<BTreeMap<RequestId, EndedRequest>, Error> {
    // Rows do not see the statement's changes of others: each gets the number of its clone's rows before it.
    static SQL: LazyLock<Bulk> = LazyLock::new(|| {
        let text = format!(
            "-- end_samples
            UPDATE requests SET state = column2, encoding = column3, result = column4, result_file = column5,
                result_size = column6, error = column7, replays = column8, finished_at = column9,
                payload = NULL, payload_file = NULL, clone = seq_id / {CLONE_STRIDE},
                event = column10 + (
                    SELECT coalesce(max(earlier.event), 0) FROM requests AS earlier
                    WHERE earlier.sampling_session_id = requests.sampling_session_id
                        AND earlier.clone = requests.seq_id / {CLONE_STRIDE} AND earlier.event IS NOT NULL)
            FROM ({{rows}}) AS ended
            WHERE id = column1 AND (state = 'running' OR (state = 'queued' AND column2 <> 'succeeded'))
                AND payload_file IS NULL AND worker_id = column11 AND claim = column12
            RETURNING id, run_id, sampling_session_id, seq_id, tenant, kind, tokens"
        );
        Bulk::new(12, &text)
    });
    let mut clones: BTreeMap<(&SamplingSessionId, i64), i64> = BTreeMap::new();
    let mut rows = Vec::with_capacity(samples.len());
    for sample in samples {
        let place = clones.entry((sample.session, clone_of(sample.seq_id))).or_default();
        *place += 1;
        let mut values = sample.end.values(sample.id, now)?;
        let (worker, claim) = sample.claim;
        values.extend([(*place).into(), worker.into(), claim.into()]);
        rows.push(values);
    }
    let rows = SQL.fetch_all(conn, rows).await.map_err(failed("end samples"))?;
    let ends: BTreeMap<&RequestId, &RequestEnd<'_>> = samples.iter().map(|sample| (sample.id, &sample.end)).collect();
    let mut ended = BTreeMap::new();
    for row in &rows {
        let id = RequestId::new(column::<String>(row, "id")?);
        let unknown = || Error::store("end samples", format!("{id} was not about to end"));
        let end = *ends.get(&id).ok_or_else(unknown)?;
        ended.insert(id, to_ended(row, end.state(), None)?.because_of(end));
    }
    Ok(ended)
}

/// Returns the clone of a sampling client that a sample belongs to.
fn clone_of(seq_id: i64) -> i64 {
    seq_id.div_euclid(CLONE_STRIDE)
}

pub(super) fn to_ended(row: &Row, state: RequestState, unneeded: Option<String>) -> Result<EndedRequest, Error> {
    let seq_id: i64 = column(row, "seq_id")?;
    let session: Option<String> = column(row, "sampling_session_id")?;
    let run = column::<Option<String>>(row, "run_id")?.map(RunId::new);
    Ok(EndedRequest {
        tenant: TenantId::new(column::<String>(row, "tenant")?),
        kind: parsed(row, "kind", RequestKind::from_text)?,
        state,
        tokens: as_u64(column(row, "tokens")?),
        unneeded,
        sample: session.map(|session| (SamplingSessionId::new(session), clone_of(seq_id))),
        creates: run.clone().filter(|_| seq_id == 0),
        run,
        failure: None,
    })
}

/// Result of a request in its row.
pub(crate) enum StoredResult {
    Pending,
    Succeeded {
        encoding: Encoding,
        result: StoredBytes,
    },
    Failed(OpError),
    Cancelled,
    /// The request ended, and its result was dropped.
    Dropped,
}

pub(crate) async fn request_result(conn: &mut Conn, tenant: &TenantId, id: &RequestId) -> Result<StoredResult, Error> {
    const SQL: &str = "-- request_result
        SELECT state, encoding, result, result_file, error, dropped FROM requests WHERE id = $1 AND tenant = $2";
    let row = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("read a result"))?
        .ok_or_else(|| Error::not_found("request", id))?;
    if column(&row, "dropped")? {
        return Ok(StoredResult::Dropped);
    }
    match parsed(&row, "state", RequestState::from_text)? {
        RequestState::Queued | RequestState::Running => Ok(StoredResult::Pending),
        RequestState::Failed => Ok(StoredResult::Failed(from_json(&row, "error")?)),
        RequestState::Cancelled => Ok(StoredResult::Cancelled),
        RequestState::Succeeded => {
            let result = StoredBytes::from_columns(column(&row, "result")?, column(&row, "result_file")?)
                .ok_or_else(|| Error::store("read a result", format!("request {id} has none")))?;
            Ok(StoredResult::Succeeded { encoding: parsed(&row, "encoding", Encoding::from_text)?, result })
        }
    }
}

/// Returns finished samples of a clone after the cursor `after`, in the order in which they finished.
pub(crate) async fn completions_after(
    conn: &mut Conn,
    tenant: &TenantId,
    session: &SamplingSessionId,
    clone: i64,
    after: i64,
) -> Result<Completions, Error> {
    const SQL: &str = "-- completions_after
        SELECT id, state, result_size, event FROM requests
        WHERE sampling_session_id = $1 AND clone = $2 AND event > $3 AND tenant = $4 ORDER BY event LIMIT $5";
    let rows = sql(SQL)
        .bind(session.as_str())
        .bind(clone)
        .bind(after)
        .bind(tenant.as_str())
        .bind(EVENTS_PER_ANSWER)
        .fetch_all(conn)
        .await
        .map_err(failed("list completions"))?;
    let mut answer = Completions { items: Vec::with_capacity(rows.len()), cursor: after };
    for row in &rows {
        let state = parsed(row, "state", RequestState::from_text)?;
        answer.items.push(CompletionItem {
            request_id: RequestId::new(column::<String>(row, "id")?),
            failed: state != RequestState::Succeeded,
            payload_size: as_u64(column(row, "result_size")?),
        });
        answer.cursor = column(row, "event")?;
    }
    Ok(answer)
}

/// Records that the client has received these results. The first time counts.
pub(crate) async fn acknowledge_requests(
    conn: &mut Conn,
    tenant: &TenantId,
    ids: &[RequestId],
    now: Timestamp,
) -> Result<(), Error> {
    const SQLITE: &str = "-- acknowledge_requests
        UPDATE requests SET acknowledged_at = $3 WHERE id IN (SELECT value FROM json_each($1)) AND tenant = $2
            AND finished_at IS NOT NULL AND acknowledged_at IS NULL";
    const POSTGRES: &str = "-- acknowledge_requests
        UPDATE requests SET acknowledged_at = $3 WHERE id = ANY($1) AND tenant = $2
            AND finished_at IS NOT NULL AND acknowledged_at IS NULL";
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let done = sql_by(SQLITE, POSTGRES).bind(ids).bind(tenant.as_str()).bind(now.0).execute(conn).await;
    done.map(drop).map_err(failed("acknowledge results"))
}
