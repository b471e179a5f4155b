//! Periodic maintenance: sessions expire, and garbage is collected.

use crate::calls::sessions::EndSession;
use crate::store::sessions;
use crate::{Error, MaintenanceReport, Scheduler, SessionStatus};

impl Scheduler {
    /// Expires sessions without heartbeats, collects garbage in the store and the storage, and reports expired
    /// checkpoints. Call this every few seconds.
    pub async fn maintain(&self) -> Result<MaintenanceReport, Error> {
        let mut report = MaintenanceReport::default();
        self.core.read_clock().await?;
        let deadline = self.core.now().minus(self.core.options.session_timeout);
        let expired = sessions::sessions_without_heartbeat(&mut self.core.system_reader().await?, deadline).await?;
        for session in expired {
            let end = EndSession {
                tenant: None,
                session: session.clone(),
                status: SessionStatus::Expired,
                without_heartbeat_since: Some(deadline),
            };
            if self.write(end).await? {
                tracing::info!(%session, "session expired: no heartbeat");
                report.sessions.push(session);
            }
        }
        // Before its sessions end, an organisation's keys are refused.
        self.core.refresh_grants().await?;
        // This includes sessions that calls created while their organisation was being disabled.
        self.core.end_sessions_of_disabled().await?;
        self.core.resume_cancellations().await?;
        self.core.collect_rows().await?;
        self.core.collect_ended().await?;
        self.core.thin_out_metrics().await?;
        self.core.collect_usage().await?;
        self.core.collect_uploads().await?;
        self.core.collect_orphans().await?;
        report.checkpoints = self.expired_checkpoints().await?;
        Ok(report)
    }
}
