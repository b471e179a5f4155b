//! Finds the rows that still need a folder of the storage, and accesses the table `loads`.

use std::path::{Path, PathBuf};

use trainyard_protocol::RequestId;
use trainyard_storage::Area;

use super::db::{Conn, sql};
use super::failed;
use crate::{Error, Timestamp};

/// Areas of the storage whose entries are folders that rows name.
pub(crate) const AREAS: [Area; 3] =
    [Area { root: "checkpoints", depth: 3 }, Area { root: "snapshots", depth: 2 }, Area { root: "uploads", depth: 1 }];

/// Returns whether a folder is needed: by a checkpoint or an upload; or, for an open session and one that expired after
/// `expired_after` and may be revived, by a sampling session, a run's snapshot, or a load that no snapshot makes
/// unnecessary.
pub(crate) async fn is_needed(conn: &mut Conn, dir: &Path, expired_after: Timestamp) -> Result<bool, Error> {
    const CHECKPOINT: &str = "-- is_needed: checkpoint
        SELECT EXISTS (SELECT 1 FROM checkpoints WHERE dir = $1)";
    const UPLOAD: &str = "-- is_needed: upload
        SELECT EXISTS (SELECT 1 FROM uploads WHERE dir = $1 AND path IS NULL AND failure IS NULL)";
    const IN_USE: &str = "-- is_needed: in use
        SELECT EXISTS (
            SELECT 1 FROM sessions
            WHERE sessions.id IN (
                    SELECT session_id FROM sampling_sessions WHERE checkpoint_dir = $1
                    UNION ALL SELECT session_id FROM sampling_sessions WHERE snapshot_dir = $1 AND NOT collected
                    UNION ALL SELECT session_id FROM runs WHERE snapshot_dir = $1
                    UNION ALL SELECT load.session_id FROM loads JOIN requests AS load ON load.id = loads.request_id
                    JOIN runs ON runs.id = load.run_id
                    WHERE loads.dir = $1 AND (load.replays OR load.finished_at IS NULL)
                        AND load.seq_id > coalesce(runs.snapshot_seq, -1))
                AND (sessions.status = 'active'
                    OR (sessions.status = 'expired' AND sessions.ended_at > $2)
                    OR EXISTS (SELECT 1 FROM requests WHERE session_id = sessions.id AND finished_at IS NULL)))";
    let by_name = [CHECKPOINT, UPLOAD].map(|statement| sql(statement).bind(text(dir)));
    for statement in by_name.into_iter().chain([sql(IN_USE).bind(text(dir)).bind(expired_after.0)]) {
        let found = statement.scalar(conn).await;
        if found.map_err(failed("look for users of a folder"))?.unwrap_or(false) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Records the folder that a load reads.
pub(crate) async fn insert_load(conn: &mut Conn, request: &RequestId, dir: &Path) -> Result<(), Error> {
    const SQL: &str = "-- insert_load
        INSERT INTO loads (request_id, dir) VALUES ($1, $2)";
    sql(SQL)
        .bind(request.as_str())
        .bind(text(dir))
        .execute(conn)
        .await
        .map_err(failed("record the folder that a load reads"))?;
    Ok(())
}

/// Returns the folder that a load reads, if it is recorded.
pub(crate) async fn load(conn: &mut Conn, request: &RequestId) -> Result<Option<PathBuf>, Error> {
    const SQL: &str = "-- load
        SELECT dir FROM loads WHERE request_id = $1";
    let found: Option<String> =
        sql(SQL).bind(request.as_str()).scalar(conn).await.map_err(failed("find the folder that a load reads"))?;
    Ok(found.map(PathBuf::from))
}

/// Returns a folder as the text of a column.
pub(crate) fn text(dir: &Path) -> String {
    dir.to_string_lossy().into_owned()
}
