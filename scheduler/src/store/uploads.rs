//! The tables `uploads` and `upload_pieces`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trainyard_protocol::{OpError, RunId, TenantId, TinkerPath, UploadId};

use super::db::{Conn, Row, column, sql};
use super::folders::text;
use super::{as_i64, as_u64, failed, from_json, parsed, to_json};
use crate::{Error, NewUpload, Timestamp, Upload, UploadState, UploadedFile};

/// Inserts an upload without content.
pub(crate) async fn insert_upload(
    conn: &mut Conn,
    tenant: &TenantId,
    id: &UploadId,
    dir: &Path,
    new: &NewUpload,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_upload
        INSERT INTO uploads (id, tenant, spec, project_id, dir, totals, bytes, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8)";
    let totals: BTreeMap<&str, Option<u64>> = new.files.iter().map(|file| (file.as_str(), None)).collect();
    let done = sql(SQL)
        .bind(id.as_str())
        .bind(tenant.as_str())
        .bind(to_json(&new.spec)?)
        .bind(new.project_id.as_deref())
        .bind(text(dir))
        .bind(to_json(&totals)?)
        .bind(now.0)
        .bind(expires_at.0)
        .execute(conn)
        .await;
    done.map(drop).map_err(failed("start an upload"))
}

/// Returns an unexpired upload of the tenant.
pub(crate) async fn upload(conn: &mut Conn, tenant: &TenantId, id: &UploadId, now: Timestamp) -> Result<Upload, Error> {
    const SQL: &str = "-- upload
        SELECT id, spec, project_id, dir, totals, run_id, path, failure, expires_at
        FROM uploads WHERE id = $1 AND tenant = $2 AND expires_at > $3";
    const PIECES: &str = "-- upload: pieces
        SELECT file, name, length FROM upload_pieces WHERE upload_id = $1 ORDER BY file, start";
    let found = sql(SQL).bind(id.as_str()).bind(tenant.as_str()).bind(now.0).fetch_optional(&mut *conn).await;
    let row = found.map_err(failed("find an upload"))?.ok_or_else(|| Error::not_found("upload", id))?;
    let mut upload = to_upload(&row)?;
    let pieces = sql(PIECES).bind(id.as_str()).fetch_all(conn).await.map_err(failed("find an upload"))?;
    for row in &pieces {
        let file = upload.files.entry(column(row, "file")?).or_default();
        file.pieces.push((column(row, "name")?, as_u64(column(row, "length")?)));
    }
    Ok(upload)
}

fn to_upload(row: &Row) -> Result<Upload, Error> {
    let totals: BTreeMap<String, Option<u64>> = from_json(row, "totals")?;
    let run: Option<String> = column(row, "run_id")?;
    let state = if column::<Option<String>>(row, "path")?.is_some() {
        UploadState::Finished(parsed(row, "path", |path| path.parse().ok())?)
    } else if column::<Option<String>>(row, "failure")?.is_some() {
        UploadState::Refused(from_json(row, "failure")?)
    } else {
        run.map_or(UploadState::Open, |run| UploadState::Checking(RunId::new(run)))
    };
    let empty = |total| UploadedFile { total, pieces: Vec::new() };
    Ok(Upload {
        id: UploadId::new(column::<String>(row, "id")?),
        spec: from_json(row, "spec")?,
        project_id: column(row, "project_id")?,
        dir: PathBuf::from(column::<String>(row, "dir")?),
        expires_at: Timestamp(column(row, "expires_at")?),
        files: totals.into_iter().map(|(file, total)| (file, empty(total))).collect(),
        state,
    })
}

/// Adds a piece to the end of a file.
pub(crate) async fn insert_piece(
    conn: &mut Conn,
    id: &UploadId,
    file: &str,
    start: u64,
    name: &str,
    length: u64,
) -> Result<(), Error> {
    const SQL: &str = "-- insert_piece
        INSERT INTO upload_pieces (upload_id, file, start, length, name) VALUES ($1, $2, $3, $4, $5)";
    let insert = sql(SQL).bind(id.as_str()).bind(file).bind(as_i64(start)).bind(as_i64(length)).bind(name);
    insert.execute(conn).await.map(drop).map_err(failed("store a piece of an upload"))
}

/// Removes the pieces of a file that begin at or behind an offset.
pub(crate) async fn delete_pieces(conn: &mut Conn, id: &UploadId, file: &str, from: u64) -> Result<(), Error> {
    const SQL: &str = "-- delete_pieces
        DELETE FROM upload_pieces WHERE upload_id = $1 AND file = $2 AND start >= $3";
    let done = sql(SQL).bind(id.as_str()).bind(file).bind(as_i64(from)).execute(conn).await;
    done.map(drop).map_err(failed("remove a piece of an upload"))
}

/// Records the known sizes of an upload's files, and the bytes that count against the quota.
pub(crate) async fn set_sizes(
    conn: &mut Conn,
    id: &UploadId,
    files: &BTreeMap<String, UploadedFile>,
) -> Result<(), Error> {
    const SQL: &str = "-- set_sizes
        UPDATE uploads SET totals = $2, bytes = $3 WHERE id = $1";
    let totals: BTreeMap<&str, Option<u64>> = files.iter().map(|(name, file)| (name.as_str(), file.total)).collect();
    let bytes = files.values().fold(0u64, |sum, file| sum.saturating_add(file.total.unwrap_or(0).max(file.received())));
    let done = sql(SQL).bind(id.as_str()).bind(to_json(&totals)?).bind(as_i64(bytes)).execute(conn).await;
    done.map(drop).map_err(failed("update an upload"))
}

/// Returns the number and the bytes of a tenant's uploads that have neither become checkpoints nor been refused.
pub(crate) async fn open_uploads(conn: &mut Conn, tenant: &TenantId) -> Result<(u64, u64), Error> {
    const SQL: &str = "-- open_uploads
        SELECT count(*) AS found, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes
        FROM uploads WHERE tenant = $1 AND path IS NULL AND failure IS NULL";
    let row = sql(SQL).bind(tenant.as_str()).fetch_optional(conn).await.map_err(failed("check a quota"))?;
    row.map_or(Ok((0, 0)), |row| Ok((as_u64(column(&row, "found")?), as_u64(column(&row, "bytes")?))))
}

/// Records the run that checks an upload, the actor who asked for that, and the time until which the upload is kept for
/// it.
pub(crate) async fn set_run(
    conn: &mut Conn,
    id: &UploadId,
    run: Option<&RunId>,
    checked_by: Option<&str>,
    expires_at: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- set_run
        UPDATE uploads SET run_id = $2, checked_by = $3, expires_at = $4 WHERE id = $1";
    let set = sql(SQL).bind(id.as_str()).bind(run.map(RunId::as_str)).bind(checked_by).bind(expires_at.0);
    let done = set.execute(conn).await;
    done.map(drop).map_err(failed("update an upload"))
}

/// Returns the tenant's upload that a run is checking, unless the end is recorded, with the actor who asked for the
/// check.
pub(crate) async fn checked_by_run(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
) -> Result<Option<(UploadId, Option<String>)>, Error> {
    const SQL: &str = "-- checked_by_run
        SELECT id, checked_by FROM uploads WHERE run_id = $1 AND tenant = $2 AND path IS NULL AND failure IS NULL";
    let row = sql(SQL).bind(run.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let row = row.map_err(failed("find an upload"))?;
    row.map(|row| Ok((UploadId::new(column::<String>(&row, "id")?), column(&row, "checked_by")?))).transpose()
}

/// Records the end of an upload and deletes the names of its pieces.
pub(crate) async fn set_end(conn: &mut Conn, id: &UploadId, end: Result<&TinkerPath, &OpError>) -> Result<(), Error> {
    const SQL: &str = "-- set_end
        UPDATE uploads SET path = $2, failure = $3 WHERE id = $1";
    const PIECES: &str = "-- set_end: pieces
        DELETE FROM upload_pieces WHERE upload_id = $1";
    let failure = end.err().map(to_json).transpose()?;
    let path = end.ok().map(ToString::to_string);
    let done = sql(SQL).bind(id.as_str()).bind(path).bind(failure).execute(&mut *conn).await;
    done.map_err(failed("update an upload"))?;
    sql(PIECES).bind(id.as_str()).execute(conn).await.map(drop).map_err(failed("update an upload"))
}

/// Returns the time when the next upload expires.
pub(crate) async fn next_expiry(conn: &mut Conn) -> Result<Option<Timestamp>, Error> {
    const SQL: &str = "-- next_expiry
        SELECT expires_at FROM uploads ORDER BY expires_at LIMIT 1";
    let at: Option<i64> = sql(SQL).scalar(conn).await.map_err(failed("look for expired uploads"))?;
    Ok(at.map(Timestamp))
}

/// Deletes some expired uploads. Returns their folders.
pub(crate) async fn delete_expired(conn: &mut Conn, now: Timestamp) -> Result<Vec<PathBuf>, Error> {
    const EXPIRED: &str = "-- delete_expired
        SELECT id, dir FROM uploads WHERE expires_at <= $1 ORDER BY expires_at LIMIT 100";
    const PIECES: &str = "-- delete_expired: pieces
        DELETE FROM upload_pieces WHERE upload_id = $1";
    const SQL: &str = "-- delete_expired: upload
        DELETE FROM uploads WHERE id = $1";
    let rows = sql(EXPIRED).bind(now.0).fetch_all(&mut *conn).await.map_err(failed("delete expired uploads"))?;
    let mut folders = Vec::new();
    for row in rows {
        let id: String = column(&row, "id")?;
        for statement in [PIECES, SQL] {
            let done = sql(statement).bind(id.as_str()).execute(&mut *conn).await;
            done.map_err(failed("delete expired uploads"))?;
        }
        folders.push(PathBuf::from(column::<String>(&row, "dir")?));
    }
    Ok(folders)
}
