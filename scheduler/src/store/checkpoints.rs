//! Access to the table `checkpoints`.

use std::path::PathBuf;

use trainyard_protocol::{CheckpointKind, RunId, TenantId, TinkerPath};

use super::db::{Conn, Row, RowScope, column, page_of, sql, sql_by};
use super::folders::text;
use super::{as_i64, as_u64, failed, from_json, parsed, to_json, usage};
use crate::budgets::PAGE_BYTES;
use crate::{AccessScope, Checkpoint, Error, NewCheckpoint, Page, Timestamp};

/// Registers a checkpoint. It replaces an older one of the same path if it may or if that one has expired; returns the
/// older one's folder. The new one is not public, even if the older one was.
///
/// # Errors
/// [`Error::Invalid`] if an older one exists that it may not replace.
pub(crate) async fn upsert_checkpoint(
    conn: &mut Conn,
    tenant: &TenantId,
    new: &NewCheckpoint,
    now: Timestamp,
) -> Result<Option<PathBuf>, Error> {
    const OLDER: &str = "-- upsert_checkpoint: older
        SELECT dir, (expires_at IS NULL OR expires_at > $4) AS valid
        FROM checkpoints WHERE run_id = $1 AND kind = $2 AND name = $3";
    const SQL: &str = "-- upsert_checkpoint
        INSERT INTO checkpoints (run_id, kind, name, tenant, spec, dir, size_bytes, user_metadata, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (run_id, kind, name) DO UPDATE SET spec = excluded.spec, dir = excluded.dir,
            size_bytes = excluded.size_bytes, user_metadata = excluded.user_metadata,
            created_at = excluded.created_at, expires_at = excluded.expires_at, public = excluded.public";
    let older = sql(OLDER)
        .bind(new.path.run.as_str())
        .bind(new.path.kind.segment())
        .bind(new.path.name.as_str())
        .bind(now.0)
        .fetch_optional(conn)
        .await
        .map_err(failed("register a checkpoint"))?;
    let older: Option<(String, bool)> =
        older.map(|row| Ok::<_, Error>((column(&row, "dir")?, column(&row, "valid")?))).transpose()?;
    if older.as_ref().is_some_and(|(_, valid)| *valid) && !new.overwrite {
        let name = new.path.name.as_str();
        return Err(Error::Invalid(format!(
            "path: a checkpoint named {name:?} exists; choose another name or overwrite"
        )));
    }
    sql(SQL)
        .bind(new.path.run.as_str())
        .bind(new.path.kind.segment())
        .bind(new.path.name.as_str())
        .bind(tenant.as_str())
        .bind(to_json(&new.spec)?)
        .bind(text(&new.dir))
        .bind(as_i64(new.size_bytes))
        .bind(to_json(&new.user_metadata)?)
        .bind(now.0)
        .bind(new.expires_in.map(|seconds| now.0.saturating_add(seconds.saturating_mul(1000))))
        .execute(conn)
        .await
        .map_err(failed("register a checkpoint"))?;
    usage::begin_storage(conn, &new.path, new.size_bytes, now).await?;
    Ok(older.map(|(dir, _)| PathBuf::from(dir)).filter(|dir| *dir != new.dir))
}

/// Keeps a checkpoint, and its folder, from being deleted or replaced before the transaction has ended. The connection
/// is in `scope` afterwards.
pub(crate) async fn hold_checkpoint(conn: &mut Conn, path: &TinkerPath, scope: &RowScope) -> Result<(), Error> {
    // A writing transaction on SQLite excludes other writers.
    const SQLITE: &str = "-- hold_checkpoint
        SELECT 1 FROM checkpoints WHERE run_id = $1 AND kind = $2 AND name = $3";
    const POSTGRES: &str = "-- hold_checkpoint
        SELECT 1 FROM checkpoints WHERE run_id = $1 AND kind = $2 AND name = $3 FOR SHARE";
    // Locking a row counts as a change, and rows of other tenants' public checkpoints must be locked too.
    conn.enter(&RowScope::System).await.map_err(failed("find a checkpoint"))?;
    sql_by(SQLITE, POSTGRES)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .execute(conn)
        .await
        .map_err(failed("find a checkpoint"))?;
    conn.enter(scope).await.map_err(failed("find a checkpoint"))
}

/// Returns an unexpired checkpoint that the tenant may read.
pub(crate) async fn readable_checkpoint(
    conn: &mut Conn,
    tenant: &TenantId,
    path: &TinkerPath,
    now: Timestamp,
) -> Result<Checkpoint, Error> {
    const SQL: &str = "-- readable_checkpoint
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
        FROM checkpoints
        WHERE run_id = $1 AND kind = $2 AND name = $3 AND (tenant = $4 OR public)
            AND (expires_at IS NULL OR expires_at > $5)";
    let row = sql(SQL)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .bind(tenant.as_str())
        .bind(now.0)
        .fetch_optional(conn)
        .await
        .map_err(failed("find a checkpoint"))?
        .ok_or_else(|| Error::not_found("checkpoint", path))?;
    to_checkpoint(&row)
}

/// Selection of checkpoints in a listing.
#[derive(Clone, Copy)]
pub(crate) enum Listed<'a> {
    /// The tenant's checkpoints, and public ones of other tenants if the scope includes them.
    In(AccessScope),
    /// Checkpoints of one run that the tenant may read.
    OfRun(&'a RunId),
    /// The tenant's checkpoints in sessions of a project.
    OfProject(&'a str),
}

/// Returns unexpired checkpoints, newest first, and their number on all pages.
pub(crate) async fn list_checkpoints(
    conn: &mut Conn,
    tenant: &TenantId,
    listed: Listed<'_>,
    page: Page,
    now: Timestamp,
) -> Result<(Vec<Checkpoint>, u64), Error> {
    const SQL: &str = "-- list_checkpoints
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
        FROM checkpoints WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > $2)
        ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $3 OFFSET $4";
    const COUNT: &str = "-- list_checkpoints: count
        SELECT count(*) FROM checkpoints WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > $2)";
    // Read as many of either kind as the page may contain.
    const ACCESSIBLE: &str = "-- list_checkpoints: accessible
        SELECT * FROM (
            SELECT * FROM (
                SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
                FROM checkpoints WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > $2)
                ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $3 + $4) AS own
            UNION ALL SELECT * FROM (
                SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
                FROM checkpoints
                WHERE public AND (tenant <> $1) IS TRUE AND (expires_at IS NULL OR expires_at > $2)
                ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $3 + $4) AS others) AS found
        ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $3 OFFSET $4";
    const COUNT_ACCESSIBLE: &str = "-- list_checkpoints: count of accessible
        SELECT (SELECT count(*) FROM checkpoints WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > $2))
            + (SELECT count(*) FROM checkpoints
                WHERE public AND (tenant <> $1) IS TRUE AND (expires_at IS NULL OR expires_at > $2))";
    // A run has few checkpoints; `IS TRUE` keeps SQLite from finding them by the tenant.
    const OF_RUN: &str = "-- list_checkpoints: of a run
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
        FROM checkpoints
        WHERE run_id = $5 AND (tenant = $1 OR public) IS TRUE AND (expires_at IS NULL OR expires_at > $2)
        ORDER BY created_at DESC, kind DESC, name DESC LIMIT $3 OFFSET $4";
    const COUNT_OF_RUN: &str = "-- list_checkpoints: count of a run
        SELECT count(*) FROM checkpoints
        WHERE run_id = $3 AND (tenant = $1 OR public) IS TRUE AND (expires_at IS NULL OR expires_at > $2)";
    const OF_PROJECT: &str = "-- list_checkpoints: of a project
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
        FROM checkpoints
        WHERE run_id IN (SELECT runs.id FROM sessions CROSS JOIN runs
                WHERE sessions.tenant = $1 AND sessions.project_id = $5 AND runs.session_id = sessions.id)
            AND (tenant = $1) IS TRUE AND (expires_at IS NULL OR expires_at > $2)
        ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $3 OFFSET $4";
    const COUNT_OF_PROJECT: &str = "-- list_checkpoints: count of a project
        SELECT count(*) FROM checkpoints
        WHERE run_id IN (SELECT runs.id FROM sessions CROSS JOIN runs
                WHERE sessions.tenant = $1 AND sessions.project_id = $3 AND runs.session_id = sessions.id)
            AND (tenant = $1) IS TRUE AND (expires_at IS NULL OR expires_at > $2)";
    let (mut list, mut count) = match listed {
        Listed::In(AccessScope::Owned) => (sql(SQL), sql(COUNT)),
        Listed::In(AccessScope::Accessible) => (sql(ACCESSIBLE), sql(COUNT_ACCESSIBLE)),
        Listed::OfRun(_) => (sql(OF_RUN), sql(COUNT_OF_RUN)),
        Listed::OfProject(_) => (sql(OF_PROJECT), sql(COUNT_OF_PROJECT)),
    };
    list = list.bind(tenant.as_str()).bind(now.0).bind(i64::from(page.limit)).bind(as_i64(page.offset));
    count = count.bind(tenant.as_str()).bind(now.0);
    match listed {
        Listed::In(_) => {}
        Listed::OfRun(run) => (list, count) = (list.bind(run.as_str()), count.bind(run.as_str())),
        Listed::OfProject(project) => (list, count) = (list.bind(project), count.bind(project)),
    }
    let rows = page_of(list, conn, "list checkpoints").await?;
    let total: Option<i64> = count.scalar(conn).await.map_err(failed("count checkpoints"))?;
    Ok((rows.iter().map(to_checkpoint).collect::<Result<_, _>>()?, as_u64(total.unwrap_or(0))))
}

/// The newest checkpoint of a kind that a run has, that the tenant may read and that has not expired.
pub(crate) async fn newest_checkpoint(
    conn: &mut Conn,
    tenant: &TenantId,
    run: &RunId,
    kind: CheckpointKind,
    now: Timestamp,
) -> Result<Option<Checkpoint>, Error> {
    const SQL: &str = "-- newest_checkpoint
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
        FROM checkpoints
        WHERE run_id = $1 AND kind = $2 AND (tenant = $3 OR public) IS TRUE AND (expires_at IS NULL OR expires_at > $4)
        ORDER BY created_at DESC, name DESC LIMIT 1";
    let query = sql(SQL).bind(run.as_str()).bind(kind.segment()).bind(tenant.as_str()).bind(now.0);
    let row = query.fetch_optional(conn).await.map_err(failed("find a checkpoint"))?;
    row.as_ref().map(to_checkpoint).transpose()
}

/// Expired checkpoints of all tenants.
pub(crate) async fn expired_checkpoints(conn: &mut Conn, now: Timestamp) -> Result<Vec<(TenantId, Checkpoint)>, Error> {
    const SQL: &str = "-- expired_checkpoints
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at
        FROM checkpoints WHERE expires_at <= $1 ORDER BY expires_at LIMIT 1000";
    // Those that are left out come next.
    let read = sql(SQL).bind(now.0).fetch_within(conn, "user_metadata", PAGE_BYTES).await;
    let rows = read.map_err(failed("list checkpoints"))?.rows;
    rows.iter().map(|row| Ok((TenantId::new(column::<String>(row, "tenant")?), to_checkpoint(row)?))).collect()
}

/// Removes a checkpoint of the tenant; with `expired_by` only if it had expired by then.
pub(crate) async fn delete_checkpoint(
    conn: &mut Conn,
    tenant: &TenantId,
    path: &TinkerPath,
    expired_by: Option<Timestamp>,
) -> Result<Checkpoint, Error> {
    const SQL: &str = "-- delete_checkpoint
        DELETE FROM checkpoints WHERE run_id = $1 AND kind = $2 AND name = $3 AND tenant = $4
            AND ($5 IS NULL OR expires_at <= $5)
        RETURNING run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at";
    let row = sql(SQL)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .bind(tenant.as_str())
        .bind(expired_by.map(Timestamp::as_millis))
        .fetch_optional(conn)
        .await
        .map_err(failed("delete a checkpoint"))?
        .ok_or_else(|| Error::not_found("checkpoint", path))?;
    to_checkpoint(&row)
}

/// Sets the time when a checkpoint of the tenant expires.
pub(crate) async fn set_checkpoint_expiry(
    conn: &mut Conn,
    tenant: &TenantId,
    path: &TinkerPath,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- set_checkpoint_expiry
        UPDATE checkpoints SET expires_at = $5
        WHERE run_id = $1 AND kind = $2 AND name = $3 AND tenant = $4 AND (expires_at IS NULL OR expires_at > $6)";
    let done = sql(SQL)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .bind(tenant.as_str())
        .bind(expires_at.map(Timestamp::as_millis))
        .bind(now.0)
        .execute(conn)
        .await
        .map_err(failed("update a checkpoint"))?;
    ensure_found(done, path)
}

/// Sets whether every tenant may read a checkpoint of the tenant.
pub(crate) async fn set_checkpoint_public(
    conn: &mut Conn,
    tenant: &TenantId,
    path: &TinkerPath,
    public: bool,
    now: Timestamp,
) -> Result<(), Error> {
    const SQL: &str = "-- set_checkpoint_public
        UPDATE checkpoints SET public = $5
        WHERE run_id = $1 AND kind = $2 AND name = $3 AND tenant = $4 AND (expires_at IS NULL OR expires_at > $6)";
    let done = sql(SQL)
        .bind(path.run.as_str())
        .bind(path.kind.segment())
        .bind(path.name.as_str())
        .bind(tenant.as_str())
        .bind(public)
        .bind(now.0)
        .execute(conn)
        .await
        .map_err(failed("update a checkpoint"))?;
    ensure_found(done, path)
}

fn ensure_found(rows: u64, path: &TinkerPath) -> Result<(), Error> {
    if rows == 1 { Ok(()) } else { Err(Error::not_found("checkpoint", path)) }
}

pub(super) fn to_checkpoint(row: &Row) -> Result<Checkpoint, Error> {
    let path = TinkerPath {
        run: RunId::new(column::<String>(row, "run_id")?),
        kind: parsed(row, "kind", CheckpointKind::from_segment)?,
        name: parsed(row, "name", |name| name.parse().ok())?,
    };
    Ok(Checkpoint {
        path,
        spec: from_json(row, "spec")?,
        dir: PathBuf::from(column::<String>(row, "dir")?),
        created_at: Timestamp(column(row, "created_at")?),
        size_bytes: as_u64(column(row, "size_bytes")?),
        public: column(row, "public")?,
        expires_at: column::<Option<i64>>(row, "expires_at")?.map(Timestamp),
        user_metadata: from_json(row, "user_metadata")?,
    })
}
