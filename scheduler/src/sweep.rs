//! What time brings.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::sessions::EndSession;
use crate::store::db::Conn;
use crate::store::pruning::{self, Dropped};
use crate::store::sessions;
use crate::writer::Write;
use crate::{Error, Scheduler, SessionStatus, Swept};

/// An acknowledged result is kept for so long, should the acknowledgement have been a mistake.
const ACKNOWLEDGED_RETENTION: Duration = Duration::from_secs(600);
/// Most rounds of dropping in one sweep; the next one goes on.
const ROUNDS: usize = 20;

impl Scheduler {
    /// Expires silent sessions, drops old results and what is left in the storage, and reports expired checkpoints. To be called every
    /// few seconds.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let mut swept = Swept::default();
        let deadline = self.core.now().minus(self.core.options.session_timeout);
        let silent = sessions::silent_sessions(&mut self.core.reader().await?, deadline).await?;
        for session in silent {
            let end = EndSession {
                tenant: None,
                session: session.clone(),
                status: SessionStatus::Expired,
                silent_since: Some(deadline),
            };
            if self.write(end).await?.now {
                tracing::info!(%session, "a session expired: its heartbeats stopped");
                swept.sessions.push(session);
            }
        }
        for _ in 0..ROUNDS {
            if !self.write(Prune).await?.is_full() {
                break;
            }
        }
        self.core.tidy().await?;
        swept.checkpoints = self.expired_checkpoints().await?;
        Ok(swept)
    }
}

/// Drops a part of what is no longer needed.
struct Prune;

struct Pruned {
    results: Dropped,
    requests: Dropped,
}

impl Pruned {
    /// Whether there may be more to drop.
    fn is_full(&self) -> bool {
        self.results.is_full() || self.requests.is_full()
    }
}

impl Write for Prune {
    type Output = Pruned;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Pruned, Error> {
        let (now, retention) = (core.now(), core.options.retention);
        let results = pruning::drop_results(conn, now.minus(retention), now.minus(ACKNOWLEDGED_RETENTION)).await?;
        // For one more period a dropped result is known to have been there.
        let requests = pruning::delete_requests(conn, now.minus(retention.saturating_mul(2))).await?;
        Ok(Pruned { results, requests })
    }

    fn committed(&mut self, pruned: &Pruned, core: &Arc<Core>) {
        let mut files = Vec::new();
        for dropped in [&pruned.results, &pruned.requests] {
            core.cache.forget(&dropped.requests);
            files.extend(dropped.files.iter().cloned());
        }
        let blobs = core.blobs.clone();
        core.runtime.spawn(async move { blobs.remove(files).await });
    }
}
