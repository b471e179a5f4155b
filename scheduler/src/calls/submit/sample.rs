//! Accepts samples, one by one or in groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use trainyard_protocol::{RequestId, SamplingSessionId, TenantId};

use super::accepted::{Accepted, FIRST_EPOCH, Fresh, Inserted, Submit, fingerprint, insert_or_find};
use crate::context::core::Core;
use crate::lease::ReleaseSamples;
use crate::processes::signals::Signal;
use crate::queue::ClaimedSample;
use crate::quotas::{Cost, admission};
use crate::store::blobs::StoredBytes;
use crate::store::db::{Conn, RowScope};
use crate::store::requests::{self, NewRequest, RequestTarget};
use crate::store::sampling;
use crate::writer::write::Write;
use crate::{Error, Quota, RequestKind, SampleSubmission, SamplingSession, Scheduler, Submitted};

impl Scheduler {
    /// Accepts a sample, identified by (sampling_session, seq_id).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown sampling session, [`Error::SessionFinished`], [`Error::Mismatch`] if it was
    /// submitted before with other content.
    pub async fn submit_sample(&self, tenant: &TenantId, submission: SampleSubmission) -> Result<Submitted, Error> {
        if submission.seq_id < 0 {
            return Err(Error::Invalid(format!("seq_id {} is invalid: it starts at 0", submission.seq_id)));
        }
        let fingerprint = fingerprint(RequestKind::Sample, submission.num_samples, &submission.identity);
        let (id, payload) = self.store_payload(&submission.payload).await?;
        let write = SubmitSample { tenant: tenant.clone(), id, submission, payload, fingerprint, claimed: false };
        let submitted = self.submit(write).await;
        self.core.count_refusal(tenant, &submitted);
        submitted
    }

    /// Returns whether a sample was accepted before.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn knows_sample(&self, tenant: &TenantId, of: &SamplingSessionId, seq_id: i64) -> Result<bool, Error> {
        let mut conn = self.core.reader_of(tenant).await?;
        Ok(requests::find_request(&mut conn, tenant, RequestTarget::Sampling(of), seq_id).await?.is_some())
    }
}

struct SubmitSample {
    tenant: TenantId,
    id: RequestId,
    submission: SampleSubmission,
    payload: StoredBytes,
    fingerprint: Vec<u8>,
    /// Whether the worker of this process claims the sample at once.
    claimed: bool,
}

impl SubmitSample {
    async fn sampling(&self, conn: &mut Conn, core: &Core) -> Result<Arc<SamplingSession>, Error> {
        let id = &self.submission.sampling_session;
        match core.sampling_sessions.get(&self.tenant, id) {
            Some(known) => Ok(known),
            None => Ok(Arc::new(sampling::sampling_session(conn, &self.tenant, id).await?)),
        }
    }

    fn request<'a>(&'a self, core: &'a Core, sampling: &'a SamplingSession) -> NewRequest<'a> {
        let SampleSubmission { sampling_session, seq_id, num_samples, tokens, .. } = &self.submission;
        NewRequest {
            id: &self.id,
            tenant: &self.tenant,
            session: &sampling.session,
            target: RequestTarget::Sampling(sampling_session),
            seq_id: *seq_id,
            kind: RequestKind::Sample,
            num_samples: *num_samples,
            fingerprint: &self.fingerprint,
            payload: &self.payload,
            payload_bytes: self.submission.payload.len(),
            rejected: None,
            worker: core
                .worker_for(&sampling.base_model)
                .filter(|_| core.claims_with_acceptance() && core.queue.read().can_sample(sampling)),
            tokens: *tokens,
            stores: None,
            recorded: self.submission.recorded,
        }
    }

    async fn insert(
        &mut self,
        conn: &mut Conn,
        core: &Core,
        sampling: Arc<SamplingSession>,
    ) -> Result<Accepted, Error> {
        let request = self.request(core, &sampling);
        let claimed = request.worker.is_some();
        let existing = match insert_or_find(conn, core, &request).await? {
            Inserted::New(arrival) => return Ok(self.fresh(arrival, claimed, sampling)),
            Inserted::Known(existing) => existing,
        };
        if existing.id == self.id {
            // A commit whose answer was lost has written it; since then others may have claimed it.
            return Ok(self.fresh(existing.arrival, false, sampling));
        }
        let SampleSubmission { sampling_session, seq_id, .. } = &self.submission;
        existing.ensure_same(&self.fingerprint, || format!("seq_id {seq_id}: this sample of {sampling_session}"))?;
        Ok(Accepted::known(existing.id, existing.num_samples))
    }

    fn fresh(&mut self, arrival: i64, claimed: bool, sampling: Arc<SamplingSession>) -> Accepted {
        self.claimed = claimed;
        let fresh = Fresh { arrival, session: sampling.session.clone(), owner: None, sampling: Some(sampling) };
        Accepted::fresh(self.id.clone(), self.submission.num_samples, fresh)
    }
}

impl Submit for SubmitSample {
    fn payload(&self) -> &StoredBytes {
        &self.payload
    }
}

impl Write for SubmitSample {
    type Output = Accepted;

    const UNDO: bool = false;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::QueuedTokens)
    }

    // Whether the write may join others; samples that count against a quota are written one by one.
    fn joins(&self, core: &Core) -> bool {
        self.counts(core).is_empty()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Accepted, Error> {
        let sampling = self.sampling(conn, core).await?;
        admission::check_sample(conn, core, &self.tenant, &self.submission).await?;
        self.insert(conn, core, sampling).await
    }

    async fn apply_all(
        writes: Vec<&mut Self>,
        conn: &mut Conn,
        core: &Core,
    ) -> Result<Vec<Result<Accepted, Error>>, Error> {
        let mut samplings = Vec::with_capacity(writes.len());
        for write in &writes {
            samplings.push(write.sampling(conn, core).await);
        }
        let found = writes.iter().zip(&samplings);
        let new: Vec<NewRequest<'_>> =
            found.filter_map(|(write, sampling)| Some(write.request(core, sampling.as_ref().ok()?))).collect();
        let arrivals = requests::insert_requests(conn, &new, core.now()).await?;
        // The claimed samples were chosen before; the answers must agree with the written rows.
        let claimed: BTreeSet<RequestId> =
            new.iter().filter(|new| new.worker.is_some()).map(|new| new.id.clone()).collect();
        let mut outputs = Vec::with_capacity(writes.len());
        for (write, sampling) in writes.into_iter().zip(samplings) {
            outputs.push(match (sampling, arrivals.get(&write.id)) {
                (Ok(sampling), Some(arrival)) => Ok(write.fresh(*arrival, claimed.contains(&write.id), sampling)),
                // The sample was accepted before, or its session no longer accepts requests.
                (Ok(sampling), None) => write.insert(conn, core, sampling).await,
                (Err(error), _) => Err(error),
            });
        }
        Ok(outputs)
    }

    fn signals(&self, accepted: &Accepted, signals: &mut Vec<Signal>) {
        if accepted.fresh.is_some() && !self.claimed {
            signals.push(Signal::Samples);
        }
    }

    fn committed(&mut self, accepted: &Accepted, core: &Arc<Core>) {
        let Some(Fresh { arrival, session, sampling: Some(sampling), .. }) = &accepted.fresh else { return };
        tracing::debug!(
            request = %self.id, sampling_session = %self.submission.sampling_session,
            seq_id = self.submission.seq_id, "sample accepted"
        );
        core.touch(session);
        if !self.claimed {
            return core.claims.wake();
        }
        let sample = ClaimedSample {
            cost: Cost::new(self.submission.tokens, core.now()),
            arrival: *arrival,
            request: self.id.clone(),
            tenant: self.tenant.clone(),
            seq_id: self.submission.seq_id,
            claim: FIRST_EPOCH,
            sequences: self.submission.num_samples as usize,
            sampling: Arc::clone(sampling),
        };
        let payload = Some((self.submission.payload.clone(), self.submission.decoded.clone()));
        core.with_queue(|queue| {
            // The snapshot that the sample needs may have been evicted in the meantime.
            if queue.can_sample(&sample.sampling) {
                queue.add_sample(sample, payload);
            } else {
                core.record(ReleaseSamples { samples: vec![(sample.request, sample.claim)], quiet: false });
            }
        });
    }
}
