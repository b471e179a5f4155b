//! Applies ends of sessions in the process whose worker has their runs and samples.

use std::sync::Arc;

use trainyard_protocol::SessionId;

use crate::context::core::Core;
use crate::queue::Queue;
use crate::store::sessions;
use crate::{Error, FinishReason, SessionStatus};

impl Core {
    /// Applies ends of sessions whose notification was missed.
    pub(super) async fn apply_missed_session_ends(self: &Arc<Self>) -> Result<(), Error> {
        let known = self.queue.read().session_ids();
        let ended = sessions::ended_sessions(&mut self.system_reader().await?, known).await?;
        for (session, status) in ended {
            self.end_session_here(&session, &status).await?;
        }
        Ok(())
    }

    /// Applies a session's end, if it has ended. Requests accepted before the end are read first, because they may
    /// close a gap.
    pub(crate) async fn end_session_here(
        self: &Arc<Self>,
        session: &SessionId,
        status: &SessionStatus,
    ) -> Result<(), Error> {
        if *status == SessionStatus::Active {
            return Ok(());
        }
        let runs = self.queue.read().runs_of_session(session);
        for run in runs {
            self.read_new_requests(&run).await?;
        }
        self.with_queue(|queue| apply_session_end(queue, session, status));
        Ok(())
    }
}

/// Applies a session's status to the queue. This is repeated for a session that has ended with work left.
pub(crate) fn apply_session_end(queue: &mut Queue, session: &SessionId, status: &SessionStatus) {
    match status {
        SessionStatus::Active => {}
        SessionStatus::Finished { reason: FinishReason::Success, .. } => queue.end_session(session, false),
        SessionStatus::Finished { .. } => queue.end_session(session, true),
        SessionStatus::Expired => queue.suspend_session(session),
    }
}
