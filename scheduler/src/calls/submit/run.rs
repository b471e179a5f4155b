//! Accepts requests to a run.

use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, TenantId};

use super::accepted::{Accepted, Fresh, Inserted, Submit, fingerprint, insert_or_find};
use crate::context::core::Core;
use crate::processes::signals::Signal;
use crate::queue::AcceptedRequest;
use crate::quotas::{Cost, admission};
use crate::store::blobs::StoredBytes;
use crate::store::db::{Conn, RowScope};
use crate::store::requests::{NewRequest, RequestTarget};
use crate::store::runs;
use crate::writer::write::Write;
use crate::{Error, Quota, RequestKind, RunSubmission, Scheduler, Submitted};

impl Scheduler {
    /// Accepts a request to a run, identified by (run, seq_id), in any order of arrival.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, [`Error::SessionFinished`], [`Error::Mismatch`] if it was submitted
    /// before with other content, [`Error::Invalid`] for a seq_id below 1, [`Error::SeqGap`] for a seq_id too far ahead
    /// of the run's next one, [`Error::Quota`] while the queue of the run or tenant is full.
    pub async fn submit_run(&self, tenant: &TenantId, submission: RunSubmission) -> Result<Submitted, Error> {
        if submission.seq_id < 1 {
            return Err(Error::Invalid(format!("seq_id {} is invalid: it starts at 1", submission.seq_id)));
        }
        if matches!(submission.kind, RequestKind::CreateModel | RequestKind::Sample) {
            return Err(Error::Invalid(format!("a {} request is not addressed to a run", submission.kind.as_str())));
        }
        let fingerprint = fingerprint(submission.kind, 0, &submission.identity);
        if StoredBytes::in_row(&submission.payload).is_none() {
            // Check first, so that no file is written for a request that will be refused.
            let checked =
                admission::check_training(&mut self.core.reader_of(tenant).await?, &self.core, tenant, &submission)
                    .await;
            self.core.count_refusal(tenant, &checked);
            checked?;
        }
        let (id, payload) = self.store_payload(&submission.payload).await?;
        let write = SubmitRun { tenant: tenant.clone(), id, submission, payload, fingerprint, refused: None };
        let submitted = self.submit(write).await;
        self.core.count_refusal(tenant, &submitted);
        submitted
    }
}

struct SubmitRun {
    tenant: TenantId,
    id: RequestId,
    submission: RunSubmission,
    payload: StoredBytes,
    fingerprint: Vec<u8>,
    /// Quota's refusal, if any. It is decided once, even if the write is repeated.
    refused: Option<Option<OpError>>,
}

impl SubmitRun {
    fn rejected(&self) -> Option<&OpError> {
        self.submission.rejected.as_ref().or_else(|| self.refused.as_ref()?.as_ref())
    }
}

impl Submit for SubmitRun {
    fn payload(&self) -> &StoredBytes {
        &self.payload
    }
}

impl Write for SubmitRun {
    type Output = Accepted;

    const UNDO: bool = false;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::QueuedRequests)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Accepted, Error> {
        let now = core.now();
        let (session, owner) = runs::session_of_run(conn, &self.tenant, &self.submission.run).await?;
        admission::check_training(conn, core, &self.tenant, &self.submission).await?;
        if self.refused.is_none() {
            self.refused = Some(admission::storage_refusal(conn, core, &self.tenant, &self.submission).await?);
        }
        let RunSubmission { run, seq_id, kind, tokens, .. } = &self.submission;
        let target = RequestTarget::Run(run);
        let request = NewRequest {
            id: &self.id,
            tenant: &self.tenant,
            session: &session,
            target,
            seq_id: *seq_id,
            kind: *kind,
            num_samples: 0,
            fingerprint: &self.fingerprint,
            payload: &self.payload,
            payload_bytes: self.submission.payload.len(),
            rejected: self.rejected(),
            worker: None,
            tokens: *tokens,
            stores: self.submission.stores,
            recorded: false,
        };
        let existing = match insert_or_find(conn, core, &request).await? {
            Inserted::New(arrival) => {
                runs::touch_run(conn, run, now).await?;
                return Ok(Accepted::fresh(self.id.clone(), 0, Fresh { arrival, session, owner, sampling: None }));
            }
            Inserted::Known(existing) => existing,
        };
        if existing.id == self.id {
            let fresh = Fresh { arrival: existing.arrival, session, owner, sampling: None };
            return Ok(Accepted::fresh(self.id.clone(), 0, fresh));
        }
        existing.ensure_same(&self.fingerprint, || format!("seq_id {seq_id}: this request of {run}"))?;
        Ok(Accepted::known(existing.id, 0))
    }

    fn signals(&self, accepted: &Accepted, signals: &mut Vec<Signal>) {
        if let Some(fresh) = &accepted.fresh {
            signals.push(Signal::Run(self.submission.run.clone(), fresh.owner.clone()));
        }
    }

    fn committed(&mut self, accepted: &Accepted, core: &Arc<Core>) {
        let Some(fresh) = &accepted.fresh else { return };
        tracing::debug!(
            request = %self.id, run = %self.submission.run, seq_id = self.submission.seq_id,
            kind = self.submission.kind.as_str(), refused = self.rejected().is_some(), "request accepted"
        );
        let RunSubmission { run, seq_id, kind, payload, decoded, tokens, .. } = &self.submission;
        core.touch(&fresh.session);
        if matches!(self.refused, Some(Some(_))) {
            core.metrics.refused(Quota::StorageBytes, &self.tenant);
        }
        let mut elsewhere = false;
        core.with_queue(|queue| {
            if queue.next_seq(run).is_none() {
                // The lease is free or another worker's, or the run is being read, perhaps without this request.
                return elsewhere = true;
            }
            match self.rejected() {
                Some(_) => queue.consume(run, *seq_id),
                None => {
                    let payload = Some((payload.clone(), decoded.clone()));
                    let (request, cost) = (self.id.clone(), Cost::new(*tokens, core.now()));
                    queue.enqueue(run, *seq_id, AcceptedRequest { request, kind: *kind, cost, payload });
                }
            }
        });
        if elsewhere {
            core.run_has_request(run.clone(), fresh.owner.as_deref());
        }
    }
}
