//! Garbage collection in the store: results whose retention is over, and rows of sessions that ended long ago.

use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::context::core::Core;
use crate::store::agent_sessions;
use crate::store::db::{Conn, RowScope};
use crate::store::gc::{self, DroppedRows};
use crate::writer::write::Write;

/// Time for which an acknowledged result is kept, in case the acknowledgement was a mistake.
const ACKNOWLEDGED_RETENTION: Duration = Duration::from_secs(600);
/// Maximum number of rounds of one call; the next call continues.
const ROUNDS: usize = 20;

impl Core {
    /// Drops results, and deletes rows of ended sessions, whose retention is over.
    pub(crate) async fn collect_rows(&self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            if !self.call(CollectRows).await?.is_full() {
                break;
            }
        }
        Ok(())
    }
}

/// A write that drops a part of the unneeded rows.
struct CollectRows;

struct Collected {
    results: DroppedRows,
    sessions: DroppedRows,
    /// Whether there may be more agent sessions to delete.
    more_agent_sessions: bool,
}

impl Collected {
    /// Returns whether there may be more to drop.
    fn is_full(&self) -> bool {
        self.results.is_full || self.sessions.is_full || self.more_agent_sessions
    }
}

impl Write for CollectRows {
    type Output = Collected;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Collected, Error> {
        let (now, retention) = (core.now(), core.options.retention);
        let results = gc::drop_results(conn, now.minus(retention), now.minus(ACKNOWLEDGED_RETENTION)).await?;
        // For one more period, polls of requests with dropped results are answered as gone.
        let before = now.minus(retention.saturating_mul(2));
        let sessions = gc::collect_sessions(conn, before).await?;
        let more_agent_sessions = agent_sessions::collect_agent_sessions(conn, before).await?;
        Ok(Collected { results, sessions, more_agent_sessions })
    }

    fn committed(&mut self, collected: &Collected, core: &Arc<Core>) {
        let mut files = Vec::new();
        for dropped in [&collected.results, &collected.sessions] {
            core.results.forget(&dropped.requests);
            files.extend(dropped.files.iter().cloned());
        }
        let (shared, folders) = (Arc::clone(core), collected.sessions.folders.clone());
        core.runtime.spawn(async move {
            shared.blobs.remove(files).await;
            for folder in folders {
                if let Err(error) = shared.remove_unless_needed(folder.into()).await {
                    tracing::debug!(%error, "folder could not be removed; a later collection retries");
                }
            }
        });
    }
}
