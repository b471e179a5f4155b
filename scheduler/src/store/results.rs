//! The table `requests`: how requests end, and reading what came of them.

use sqlx::SqliteConnection;
use trainyard_protocol::{OpError, RequestId, RunId, SamplingSessionId, TenantId};

use super::blobs::Stored;
use super::{as_i64, as_u64, column, failed, from_json, parsed, to_json};
use crate::{CompletionItem, Completions, Encoding, Error, RequestState, Timestamp};

/// Most events that one answer holds.
const EVENTS_PER_ANSWER: i64 = 1000;
/// A clone of a sampling client counts its samples from a multiple of this.
const CLONE_STRIDE: i64 = 1_000_000_000;

/// How a request ends.
pub(crate) enum End<'a> {
    Succeeded { encoding: Encoding, result: &'a Stored, size: u64, replays: bool },
    Failed(&'a OpError),
    Cancelled,
}

impl End<'_> {
    fn state(&self) -> RequestState {
        match self {
            Self::Succeeded { .. } => RequestState::Succeeded,
            Self::Failed(_) => RequestState::Failed,
            Self::Cancelled => RequestState::Cancelled,
        }
    }
}

/// What ended.
pub(crate) struct Ended {
    /// The file of a payload that nobody needs any more.
    pub(crate) unneeded: Option<String>,
    /// The sampling session and clone of a sample.
    pub(crate) sample: Option<(SamplingSessionId, i64)>,
    /// The run that the request was to create.
    pub(crate) creates: Option<RunId>,
}

/// Ends a request that waits or runs; `None` when it has ended already.
pub(crate) async fn end_request(
    conn: &mut SqliteConnection,
    id: &RequestId,
    end: &End<'_>,
    now: Timestamp,
) -> Result<Option<Ended>, Error> {
    let Some(open) = open_request(conn, id).await? else { return Ok(None) };
    let clone = open.seq_id.div_euclid(CLONE_STRIDE);
    let event = match &open.sampling_session {
        Some(session) => Some(next_event(conn, session, clone).await?),
        None => None,
    };
    let replays = matches!(end, End::Succeeded { replays: true, .. });
    write_end(conn, id, end, event.map(|event| (clone, event)), now).await?;
    Ok(Some(Ended {
        unneeded: open.payload_file.filter(|_| !replays),
        sample: open.sampling_session.map(|session| (session, clone)),
        creates: open.run.filter(|_| open.seq_id == 0),
    }))
}

struct OpenRequest {
    run: Option<RunId>,
    sampling_session: Option<SamplingSessionId>,
    seq_id: i64,
    payload_file: Option<String>,
}

async fn open_request(conn: &mut SqliteConnection, id: &RequestId) -> Result<Option<OpenRequest>, Error> {
    const SQL: &str = "-- open_request
        SELECT run_id, sampling_session_id, seq_id, payload_file FROM requests WHERE id = ?1 AND finished_at IS NULL";
    let row = sqlx::query(SQL).bind(id.as_str()).fetch_optional(conn).await.map_err(failed("find a request"))?;
    row.map(|row| {
        Ok(OpenRequest {
            run: column::<Option<String>>(&row, "run_id")?.map(RunId::new),
            sampling_session: column::<Option<String>>(&row, "sampling_session_id")?.map(SamplingSessionId::new),
            seq_id: column(&row, "seq_id")?,
            payload_file: column(&row, "payload_file")?,
        })
    })
    .transpose()
}

async fn next_event(conn: &mut SqliteConnection, session: &SamplingSessionId, clone: i64) -> Result<i64, Error> {
    const SQL: &str = "-- next_event
        SELECT coalesce(max(event), 0) + 1 FROM requests
        WHERE sampling_session_id = ?1 AND clone = ?2 AND event IS NOT NULL";
    sqlx::query_scalar(SQL)
        .bind(session.as_str())
        .bind(clone)
        .fetch_one(conn)
        .await
        .map_err(failed("number a completion"))
}

async fn write_end(
    conn: &mut SqliteConnection,
    id: &RequestId,
    end: &End<'_>,
    event: Option<(i64, i64)>,
    now: Timestamp,
) -> Result<(), Error> {
    // A success follows from running alone; failure and cancellation also from waiting.
    const SQL: &str = "-- write_end
        UPDATE requests SET state = ?2, encoding = ?3, result = ?4, result_file = ?5, result_size = ?6, error = ?7,
            replays = ?8, clone = ?9, event = ?10, finished_at = ?11,
            payload = CASE WHEN ?8 THEN payload END, payload_file = CASE WHEN ?8 THEN payload_file END
        WHERE id = ?1 AND (state = 'running' OR (state = 'queued' AND ?2 <> 'succeeded'))";
    let (encoding, result, size, replays, error) = match end {
        End::Succeeded { encoding, result, size, replays } => (Some(*encoding), Some(*result), *size, *replays, None),
        End::Failed(error) => (None, None, 0, false, Some(*error)),
        End::Cancelled => (None, None, 0, false, None),
    };
    let done = sqlx::query(SQL)
        .bind(id.as_str())
        .bind(end.state().as_str())
        .bind(encoding.map(Encoding::as_str))
        .bind(result.and_then(Stored::inline))
        .bind(result.and_then(Stored::file))
        .bind(as_i64(size))
        .bind(error.map(to_json).transpose()?)
        .bind(replays)
        .bind(event.map(|(clone, _)| clone))
        .bind(event.map(|(_, event)| event))
        .bind(now.0)
        .execute(conn)
        .await
        .map_err(failed("end a request"))?;
    if done.rows_affected() != 1 {
        return Err(Error::store("end a request", format!("request {id} was not started")));
    }
    Ok(())
}

/// What a row says of a request.
pub(crate) enum Stands {
    Pending,
    Succeeded {
        encoding: Encoding,
        result: Stored,
    },
    Failed(OpError),
    Cancelled,
    /// It ended, and what came of it was dropped.
    Dropped,
}

pub(crate) async fn request_result(
    conn: &mut SqliteConnection,
    tenant: &TenantId,
    id: &RequestId,
) -> Result<Stands, Error> {
    const SQL: &str = "-- request_result
        SELECT state, encoding, result, result_file, error, dropped FROM requests WHERE id = ?1 AND tenant = ?2";
    let row = sqlx::query(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .fetch_optional(conn)
        .await
        .map_err(failed("read a result"))?
        .ok_or_else(|| Error::not_found("request", id))?;
    if column(&row, "dropped")? {
        return Ok(Stands::Dropped);
    }
    match parsed(&row, "state", RequestState::from_text)? {
        RequestState::Queued | RequestState::Running => Ok(Stands::Pending),
        RequestState::Failed => Ok(Stands::Failed(from_json(&row, "error")?)),
        RequestState::Cancelled => Ok(Stands::Cancelled),
        RequestState::Succeeded => {
            let result = Stored::from_columns(column(&row, "result")?, column(&row, "result_file")?)
                .ok_or_else(|| Error::store("read a result", format!("request {id} has none")))?;
            Ok(Stands::Succeeded { encoding: parsed(&row, "encoding", Encoding::from_text)?, result })
        }
    }
}

/// Finished samples of a clone after the cursor `after`, in the order in which they finished.
pub(crate) async fn completions_after(
    conn: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SamplingSessionId,
    clone: i64,
    after: i64,
) -> Result<Completions, Error> {
    const SQL: &str = "-- completions_after
        SELECT id, state, result_size, event FROM requests
        WHERE sampling_session_id = ?1 AND clone = ?2 AND event > ?3 AND tenant = ?4 ORDER BY event LIMIT ?5";
    let rows = sqlx::query(SQL)
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

/// Notes that the client has a result. The first time counts.
pub(crate) async fn acknowledge_request(
    conn: &mut SqliteConnection,
    tenant: &TenantId,
    id: &RequestId,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- acknowledge_request
        UPDATE requests SET acknowledged_at = ?3
        WHERE id = ?1 AND tenant = ?2 AND finished_at IS NOT NULL AND acknowledged_at IS NULL";
    sqlx::query(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(now.0)
        .execute(conn)
        .await
        .map_err(failed("acknowledge a result"))?;
    Ok(())
}
