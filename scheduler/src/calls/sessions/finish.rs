//! Sessions that their client finishes.

use trainyard_protocol::{SessionId, TenantId};

use super::end::EndSession;
use crate::{Error, FinishReason, Scheduler, SessionStatus};

impl Scheduler {
    /// Ends a session. The first reason counts; repetitions are accepted. After a success, accepted work is still done;
    /// otherwise all samples and waiting requests of runs are cancelled, in the background.
    pub async fn finish_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        reason: FinishReason,
        detail: Option<String>,
    ) -> Result<(), Error> {
        let end = EndSession {
            tenant: Some(tenant.clone()),
            session: session.clone(),
            status: SessionStatus::Finished { reason, detail },
            without_heartbeat_since: None,
        };
        self.write(end).await?;
        Ok(())
    }
}
