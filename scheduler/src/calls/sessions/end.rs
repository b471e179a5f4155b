//! Ends sessions: finished by their client, or expired.

use std::sync::Arc;

use trainyard_protocol::{RequestId, SessionId, TenantId};

use crate::context::core::Core;
use crate::lease::apply_session_end;
use crate::processes::signals::Signal;
use crate::queue::{creation_failed, session_ended};
use crate::store::cancellations::{self, CancelledSample};
use crate::store::db::{Conn, RowScope};
use crate::store::results::{EndedRequest, RequestEnd};
use crate::store::{requests, results, runs, sessions};
use crate::writer::write::Write;
use crate::{Error, FinishReason, Scheduler, SessionStatus, Timestamp};

impl Scheduler {
    /// Ends a session. The first reason counts; repetitions are accepted. After a success, accepted work is still done;
    /// otherwise all samples and waiting requests of runs are cancelled.
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

/// A write that ends a session.
pub(crate) struct EndSession {
    /// Tenant that asks; `None` for the scheduler itself.
    pub(crate) tenant: Option<TenantId>,
    pub(crate) session: SessionId,
    pub(crate) status: SessionStatus,
    /// Time since which there must have been no heartbeat for the session to end.
    pub(crate) without_heartbeat_since: Option<Timestamp>,
}

impl EndSession {
    /// Whether accepted work is still done.
    fn drains(&self) -> bool {
        matches!(self.status, SessionStatus::Finished { reason: FinishReason::Success, .. })
    }
}

pub(crate) struct SessionEnded {
    /// Whether this write ended the session; false if it had ended before.
    pub(crate) now: bool,
    /// Requests of runs that were cancelled here because no worker had them.
    cancelled: Vec<(RequestId, EndedRequest)>,
    samples: Vec<CancelledSample>,
}

impl Write for EndSession {
    type Output = SessionEnded;

    fn scope(&self) -> RowScope {
        self.tenant.as_ref().map_or(RowScope::System, RowScope::of)
    }

    fn sessions(&self) -> Vec<SessionId> {
        vec![self.session.clone()]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<SessionEnded, Error> {
        if let Some(tenant) = &self.tenant {
            sessions::session_row(conn, tenant, &self.session).await?;
        }
        let now = core.now();
        let mut ended = SessionEnded {
            now: sessions::end_session(conn, &self.session, &self.status, self.without_heartbeat_since, now).await?,
            cancelled: Vec::new(),
            samples: Vec::new(),
        };
        if ended.now && !self.drains() {
            ended.samples = cancellations::cancel_samples_of_session(conn, &self.session, now).await?;
            for request in requests::unowned_requests(conn, &self.session).await? {
                let end = results::end_request(conn, &request, &RequestEnd::Cancelled, None, now).await?;
                if let Some(run) = end.as_ref().and_then(|end| end.creates.as_ref()) {
                    let cause = creation_failed(run, &session_ended());
                    runs::fail_run(conn, run, &cause, false).await?;
                }
                ended.cancelled.extend(end.map(|end| (request, end)));
            }
        }
        Ok(ended)
    }

    fn signals(&self, ended: &SessionEnded, signals: &mut Vec<Signal>) {
        if ended.now {
            signals.push(Signal::Session(self.session.clone()));
        }
        for (request, ended) in &ended.cancelled {
            ended.signals(request, signals);
        }
        for CancelledSample { id, ended, claimed } in &ended.samples {
            ended.signals(id, signals);
            if *claimed {
                signals.push(Signal::Cancel(id.clone()));
            }
        }
    }

    fn committed(&mut self, ended: &SessionEnded, core: &Arc<Core>) {
        if !ended.now {
            return;
        }
        if let SessionStatus::Finished { reason, .. } = &self.status {
            tracing::info!(session = %self.session, reason = reason.as_str(), "session finished");
        }
        core.with_queue(|queue| {
            ended.samples.iter().for_each(|sample| queue.drop_sample(&sample.id));
            apply_session_end(queue, &self.session, &self.status);
        });
        for sample in &ended.samples {
            core.announce_end(&sample.id, &sample.ended, None);
        }
        for (request, ended) in &ended.cancelled {
            core.announce_end(request, ended, None);
        }
    }
}
