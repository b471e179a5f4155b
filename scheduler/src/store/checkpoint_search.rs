//! Searches of the table `checkpoints`.

use trainyard_protocol::TenantId;

use super::checkpoints::to_checkpoint;
use super::db::{Conn, column, sql, text_bytes};
use super::failed;
use crate::budgets::PAGE_BYTES;
use crate::{AccessScope, Checkpoint, CheckpointPosition, Error, Timestamp};

/// A checkpoint that a search examines.
pub(crate) struct Candidate {
    pub(crate) checkpoint: Checkpoint,
    /// Bytes of the metadata.
    pub(crate) bytes: usize,
    /// Tenant that owns the checkpoint.
    pub(crate) owner: TenantId,
    /// Project of the checkpoint, shown only to its owner.
    pub(crate) project_id: Option<String>,
}

/// Checkpoints that a search looks at.
pub(crate) struct CheckpointBatch {
    pub(crate) checkpoints: Vec<Candidate>,
    /// Whether nothing follows them.
    pub(crate) is_last: bool,
}

/// The next checkpoints behind a place that have not expired, newest first, as many as their metadata allows.
pub(crate) async fn checkpoints_behind(
    conn: &mut Conn,
    tenant: &TenantId,
    scope: AccessScope,
    after: Option<&CheckpointPosition>,
    limit: u32,
    now: Timestamp,
) -> Result<CheckpointBatch, Error> {
    const OWN: &str = "-- checkpoints_behind
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at,
            (SELECT sessions.project_id FROM runs JOIN sessions ON sessions.id = runs.session_id
                WHERE runs.id = checkpoints.run_id) AS project_id
        FROM checkpoints
        WHERE tenant = $1 AND (created_at, run_id, kind, name) < ($3, $4, $5, $6)
            AND (expires_at IS NULL OR expires_at > $2)
        ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $7";
    const OTHERS: &str = "-- checkpoints_behind: of others
        SELECT run_id, kind, name, tenant, spec, dir, size_bytes, public, user_metadata, created_at, expires_at,
            CAST(NULL AS TEXT) AS project_id
        FROM checkpoints
        WHERE public AND (tenant <> $1) IS TRUE AND (created_at, run_id, kind, name) < ($3, $4, $5, $6)
            AND (expires_at IS NULL OR expires_at > $2)
        ORDER BY created_at DESC, run_id DESC, kind DESC, name DESC LIMIT $7";
    let statements: &[&'static str] = match scope {
        AccessScope::Owned => &[OWN],
        AccessScope::Accessible => &[OWN, OTHERS],
    };
    let mut found = Vec::new();
    let mut is_last = true;
    // Behind these the statements have more.
    let mut ends: Vec<CheckpointPosition> = Vec::new();
    for statement in statements {
        let (at, run, kind, name) = match after {
            None => (i64::MAX, "", "", ""),
            Some(CheckpointPosition { created_at, path }) => {
                (created_at.0, path.run.as_str(), path.kind.segment(), path.name.as_str())
            }
        };
        let query = sql(statement).bind(tenant.as_str()).bind(now.0).bind(at).bind(run).bind(kind).bind(name);
        let read = query.bind(i64::from(limit)).fetch_within(&mut *conn, "user_metadata", PAGE_BYTES).await;
        let read = read.map_err(failed("search checkpoints"))?;
        for row in &read.rows {
            found.push(Candidate {
                checkpoint: to_checkpoint(row)?,
                bytes: text_bytes(row, "user_metadata")?,
                owner: TenantId::new(column::<String>(row, "tenant")?),
                project_id: column(row, "project_id")?,
            });
        }
        if read.is_cut || read.rows.len() >= limit as usize {
            is_last = false;
            let last = found.last().map(|Candidate { checkpoint, .. }| checkpoint);
            ends.extend(last.map(|last| CheckpointPosition { created_at: last.created_at, path: last.path.clone() }));
        }
    }
    if statements.len() > 1 {
        found.sort_by(|a, b| place(&b.checkpoint).cmp(&place(&a.checkpoint)));
        found.retain(|candidate| ends.iter().all(|end| place(&candidate.checkpoint) >= place_of(end)));
        found.truncate(limit as usize);
    }
    Ok(CheckpointBatch { checkpoints: found, is_last })
}

/// Where a search was cut.
fn place_of(position: &CheckpointPosition) -> (Timestamp, &str, &str, &str) {
    let path = &position.path;
    (position.created_at, path.run.as_str(), path.kind.segment(), path.name.as_str())
}

/// Returns the position by which checkpoints are ordered.
fn place(checkpoint: &Checkpoint) -> (Timestamp, &str, &str, &str) {
    let path = &checkpoint.path;
    (checkpoint.created_at, path.run.as_str(), path.kind.segment(), path.name.as_str())
}
