//! Snapshots for sampling in the storage, in the table `sampling_sessions`: finds those still in use, and collects the
//! others.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trainyard_protocol::RunId;

use super::db::{Conn, column, sql};
use super::failed;
use crate::{Error, Timestamp};

/// Maximum number of snapshots that are collected at once, so that the writer is never held up for long.
const AT_ONCE: usize = 32;

/// A snapshot of a run in the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedSnapshot {
    pub(crate) key: String,
    pub(crate) dir: PathBuf,
}

/// Collects snapshots of a run in the storage that were neither taken nor sampled from since `before` and that no
/// unfinished sample needs, except the `kept` most recent ones. Replays do not take them again. Returns them; their
/// folders have become unneeded.
pub(crate) async fn collect_snapshots(
    conn: &mut Conn,
    run: &RunId,
    kept: usize,
    before: Timestamp,
) -> Result<Vec<SavedSnapshot>, Error> {
    let unused = unused_snapshots(conn, run, kept, before).await?;
    for snapshot in &unused {
        collect_snapshot(conn, run, &snapshot.key).await?;
    }
    Ok(unused)
}

async fn unused_snapshots(
    conn: &mut Conn,
    run: &RunId,
    kept: usize,
    before: Timestamp,
) -> Result<Vec<SavedSnapshot>, Error> {
    const SQL: &str = "-- unused_snapshots
        SELECT sampler.snapshot, sampler.snapshot_dir, sampler.created_at,
            (SELECT max(request.finished_at) FROM requests AS request
                WHERE request.sampling_session_id = sampler.id AND request.event IS NOT NULL) AS sampled_at,
            EXISTS (SELECT 1 FROM requests AS request
                WHERE request.run_id IS NULL AND request.sampling_session_id = sampler.id
                    AND request.finished_at IS NULL) AS sampled
        FROM sampling_sessions AS sampler
        WHERE sampler.run_id = $1 AND sampler.collected = FALSE AND sampler.snapshot_dir IS NOT NULL";
    let rows = sql(SQL).bind(run.as_str()).fetch_all(conn).await.map_err(failed("list snapshots"))?;
    // Several sampling sessions may share a snapshot.
    let mut snapshots: BTreeMap<String, (i64, String)> = BTreeMap::new();
    for row in &rows {
        let (made, sampled_at): (i64, Option<i64>) = (column(row, "created_at")?, column(row, "sampled_at")?);
        let used = if column(row, "sampled")? { i64::MAX } else { sampled_at.map_or(made, |at| at.max(made)) };
        let dir: String = column(row, "snapshot_dir")?;
        let snapshot = snapshots.entry(column(row, "snapshot")?).or_insert((used, dir));
        snapshot.0 = snapshot.0.max(used);
    }
    let mut by_use: Vec<_> = snapshots.into_iter().collect();
    by_use.sort_by(|(_, (a, _)), (_, (b, _))| b.cmp(a));
    let unused = by_use.into_iter().skip(kept).filter(|(_, (used, _))| *used < before.0);
    // The oldest first.
    Ok(unused.rev().take(AT_ONCE).map(|(key, (_, dir))| SavedSnapshot { key, dir: dir.into() }).collect())
}

/// Marks a snapshot as collected.
pub(crate) async fn collect_snapshot(conn: &mut Conn, run: &RunId, key: &str) -> Result<(), Error> {
    // See `set_snapshot_dir` for the condition on the run.
    const SQL: &str = "-- collect_snapshot
        UPDATE sampling_sessions SET collected = TRUE
        WHERE session_id = (SELECT session_id FROM runs WHERE id = $1) AND snapshot = $2
            AND coalesce(run_id, '') = $1";
    const SAVES: &str = "-- collect_snapshot: saves
        UPDATE requests SET replays = FALSE, payload = NULL WHERE replays AND id IN (
            SELECT request_id FROM sampling_sessions
            WHERE session_id = (SELECT session_id FROM runs WHERE id = $1) AND snapshot = $2
                AND coalesce(run_id, '') = $1)";
    for statement in [SQL, SAVES] {
        let done = sql(statement).bind(run.as_str()).bind(key).execute(&mut *conn).await;
        done.map_err(failed("collect a snapshot"))?;
    }
    Ok(())
}
