//! Deletes rows of requests that ended long ago, while their sessions are open.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::context::core::Core;
use crate::store::collected_samplers;
use crate::store::db::{Conn, RowScope};
use crate::store::ended_requests::{self, EndedRow, ROWS};
use crate::store::gc::DroppedRows;
use crate::writer::write::Write;
use crate::{Error, Timestamp};

/// Maximum number of rounds of one call; the next call continues.
const ROUNDS: usize = 20;

impl Core {
    /// Deletes rows of requests for which polls have been answered as gone for a whole retention time, and sampling sessions
    /// without weights.
    pub(crate) async fn collect_ended(&self) -> Result<(), Error> {
        let Some(mut after) = self.ended_gc.start() else { return Ok(()) };
        let before = self.now().minus(self.options.retention.saturating_mul(2));
        for _ in 0..ROUNDS {
            let from = after.unwrap_or((i64::MIN, i64::MIN));
            let rows = ended_requests::next_ended(&mut self.system_reader().await?, before, from).await?;
            let next = rows.last().filter(|_| rows.len() as i64 >= ROWS).map(|last| last.place);
            if !rows.is_empty() {
                self.call(DeleteEnded { rows }).await?;
            }
            *after = next;
            if next.is_none() {
                break;
            }
        }
        for _ in 0..ROUNDS {
            if !self.call(DeleteSamplers { before }).await?.is_full {
                break;
            }
        }
        Ok(())
    }

    /// Forgets deleted requests, and removes their files.
    fn remove_ended(self: &Arc<Self>, deleted: &DroppedRows) {
        self.results.forget(&deleted.requests);
        let (shared, files) = (Arc::clone(self), deleted.files.clone());
        if !files.is_empty() {
            self.runtime.spawn(async move { shared.blobs.remove(files).await });
        }
    }
}

/// A write that deletes those of the rows that are not needed.
struct DeleteEnded {
    rows: Vec<EndedRow>,
}

impl Write for DeleteEnded {
    type Output = DroppedRows;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    /// Returns the tenants of the runs: no request is submitted to these in the meantime.
    fn counts(&self, _core: &Core) -> Vec<String> {
        let of_runs = self.rows.iter().filter(|row| row.of_run.is_some());
        of_runs.map(|row| row.tenant.to_string()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<DroppedRows, Error> {
        ended_requests::delete_ended(conn, &self.rows).await
    }

    fn committed(&mut self, deleted: &DroppedRows, core: &Arc<Core>) {
        core.remove_ended(deleted);
    }
}

/// A write that deletes sampling sessions whose weights were deleted before a time.
struct DeleteSamplers {
    before: Timestamp,
}

impl Write for DeleteSamplers {
    type Output = DroppedRows;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<DroppedRows, Error> {
        collected_samplers::delete_collected(conn, self.before).await
    }

    fn committed(&mut self, deleted: &DroppedRows, core: &Arc<Core>) {
        core.remove_ended(deleted);
    }
}
