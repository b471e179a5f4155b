//! Records that the database refuses because of their own content. Retried for ever, one of them would block everything
//! after it.

use super::Writer;
use super::transaction::fails_all;
use crate::Error;
use crate::context::core::{QueuedWrite, Urgency};
use crate::store::db::RowScope;
use crate::store::{failed, write_probes};

/// Number of refusals of a record alone, in sequence, after which its content is given up.
const REFUSALS: u32 = 5;

impl Writer {
    /// Counts a failure of a batch. Returns whether the content of its only record is at fault: the database has refused it
    /// repeatedly, and takes other writes.
    pub(super) async fn is_at_fault(&mut self, batch: &mut [Box<dyn QueuedWrite>], error: &Error) -> bool {
        let [write] = batch else { return false };
        let counts = write.urgency() != Urgency::Call && !fails_all(error);
        counts && write.refused() >= REFUSALS && self.can_write().await
    }

    async fn can_write(&mut self) -> bool {
        let Ok(mut conn) = self.begin(&RowScope::System).await else { return false };
        let mut done = write_probes::probe_write(&mut conn, &self.core.process).await;
        if done.is_ok() {
            done = conn.commit().await.map_err(failed("probe the store"));
        }
        if done.is_ok() {
            self.conn = Some(conn);
        }
        done.is_ok()
    }

    /// Gives up the content of a record: its request ends as failed, or nothing is written.
    pub(super) fn give_up(&mut self, write: Box<dyn QueuedWrite>, error: &Error) {
        let mut write = write;
        let subjects = write.subjects();
        self.failures = 0;
        self.core.metrics.store.given_up.inc();
        if write.simplify() {
            tracing::error!(?subjects, %error, "the database refuses a record: its request ends as failed");
            self.batch.push(write);
        } else {
            tracing::error!(?subjects, %error, "the database refuses a record: it is dropped");
            write.abandon(&self.core);
        }
    }
}
