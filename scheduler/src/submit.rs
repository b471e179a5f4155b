//! Accepting requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use crate::admission;
use crate::core::Core;
use crate::leases::ReleaseSamples;
use crate::queue::{Claimed, History, RunQueue, creation_failed};
use crate::quotas::Cost;
use crate::sessions::ensure_alive;
use crate::signals::Signal;
use crate::store::blobs::Stored;
use crate::store::db::Conn;
use crate::store::requests::{self, Existing, NewRequest, Target};
use crate::store::{runs, sampling, sessions};
use crate::waiters::lock;
use crate::writer::Write;
use crate::{
    Decoded, Error, NewRun, Quota, RequestKind, RunSubmission, SampleSubmission, SamplingSession, Scheduler, Submitted,
};

impl Scheduler {
    /// Accepts the creation of a run, identified by (session, model_seq_id).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session, [`Error::SessionFinished`], [`Error::Mismatch`] when it
    /// was submitted before with other content.
    pub async fn submit_create(&self, tenant: &TenantId, new: NewRun) -> Result<(RunId, Submitted), Error> {
        if !matches!(new.kind, RequestKind::CreateModel | RequestKind::LoadWeights) {
            return Err(Error::Invalid(format!("a {} request does not create a run", new.kind.as_str())));
        }
        let run = RunId::of_session(&new.session, new.model_seq_id);
        let fingerprint = fingerprint(new.kind, 0, &new.identity);
        let (id, payload) = self.store_payload(&new.payload).await?;
        let write = SubmitCreate { tenant: tenant.clone(), run: run.clone(), id, new, payload, fingerprint };
        let submitted = self.submit(write).await;
        self.note_refusal(tenant, &submitted);
        Ok((run, submitted?))
    }

    /// Accepts a request to a run, identified by (run, seq_id), in any order of arrival.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, [`Error::SessionFinished`], [`Error::Mismatch`] when it was
    /// submitted before with other content, [`Error::Invalid`] for a seq_id below 1.
    pub async fn submit_run(&self, tenant: &TenantId, submission: RunSubmission) -> Result<Submitted, Error> {
        if submission.seq_id < 1 {
            return Err(Error::Invalid(format!("seq_id {} is invalid: it starts at 1", submission.seq_id)));
        }
        if matches!(submission.kind, RequestKind::CreateModel | RequestKind::Sample) {
            return Err(Error::Invalid(format!("a {} request is not addressed to a run", submission.kind.as_str())));
        }
        let fingerprint = fingerprint(submission.kind, 0, &submission.identity);
        let (id, payload) = self.store_payload(&submission.payload).await?;
        self.submit(SubmitRun { tenant: tenant.clone(), id, submission, payload, fingerprint, refused: None }).await
    }

    /// Accepts a sample, identified by (sampling_session, seq_id).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown sampling session, [`Error::SessionFinished`], [`Error::Mismatch`]
    /// when it was submitted before with other content.
    pub async fn submit_sample(&self, tenant: &TenantId, submission: SampleSubmission) -> Result<Submitted, Error> {
        if submission.seq_id < 0 {
            return Err(Error::Invalid(format!("seq_id {} is invalid: it starts at 0", submission.seq_id)));
        }
        let fingerprint = fingerprint(RequestKind::Sample, submission.num_samples, &submission.identity);
        let (id, payload) = self.store_payload(&submission.payload).await?;
        let write = SubmitSample { tenant: tenant.clone(), id, submission, payload, fingerprint, taken: false };
        let submitted = self.submit(write).await;
        self.note_refusal(tenant, &submitted);
        submitted
    }

    /// Names a new request and stores its payload, in a file when it is large.
    async fn store_payload(&self, payload: &Bytes) -> Result<(RequestId, Stored), Error> {
        let id = RequestId::from_uuid(self.core.new_uuid());
        let stored = self.core.blobs.put(format!("{id}.payload"), payload).await?;
        Ok((id, stored))
    }

    async fn submit<W: Submit>(&self, write: W) -> Result<Submitted, Error> {
        let file = write.payload().file().map(str::to_owned);
        let accepted = self.write(write).await;
        // A retry, or a refused request, has no row for its file. After a failure there may be one all the same.
        let unneeded = match &accepted {
            Ok(accepted) => accepted.fresh.is_none(),
            Err(Error::Unavailable(_) | Error::Conflict(_) | Error::Store(_)) => false,
            Err(_) => true,
        };
        if let Some(file) = file.filter(|_| unneeded) {
            self.core.blobs.remove(vec![file]).await;
        }
        Ok(accepted?.submitted)
    }
}

/// A durably accepted request.
struct Accepted {
    submitted: Submitted,
    /// What the queue has to know, unless it was accepted before.
    fresh: Option<Fresh>,
}

struct Fresh {
    arrival: i64,
    session: SessionId,
    sampling: Option<Arc<SamplingSession>>,
}

impl Accepted {
    fn known(id: RequestId, num_samples: u32) -> Self {
        Self { submitted: submitted(id, num_samples), fresh: None }
    }

    fn fresh(id: RequestId, num_samples: u32, fresh: Fresh) -> Self {
        Self { submitted: submitted(id, num_samples), fresh: Some(fresh) }
    }
}

fn submitted(id: RequestId, num_samples: u32) -> Submitted {
    let sample_sequence_ids = (0..num_samples).map(|index| format!("{id}:{index}")).collect();
    Submitted { request_id: id, sample_sequence_ids }
}

/// What became of a request that was to be inserted.
enum Inserted {
    /// It has this place in the order of arrival.
    New(i64),
    /// It was there before.
    Known(Existing),
}

/// Inserts a request, unless it was before, or its session accepts nothing more.
async fn insert_or_find(conn: &mut Conn, core: &Core, new: &NewRequest<'_>) -> Result<Inserted, Error> {
    if let Some(arrival) = requests::insert_request(conn, new, core.now()).await? {
        return Ok(Inserted::New(arrival));
    }
    if let Some(existing) = requests::find_request(conn, new.tenant, new.target, new.seq_id).await? {
        return Ok(Inserted::Known(existing));
    }
    let session = sessions::session_row(conn, new.tenant, new.session).await?;
    ensure_alive(conn, core, &session).await?;
    let arrival = requests::insert_request(conn, new, core.now()).await?;
    let refused = || Error::store("accept a request", format!("request {} was not inserted", new.id));
    arrival.map(Inserted::New).ok_or_else(refused)
}

/// Of a lease or claim that begins with the row.
const FIRST_EPOCH: i64 = 1;

/// What a retry must have in common with the first attempt.
fn fingerprint(kind: RequestKind, num_samples: u32, identity: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(kind.as_str().as_bytes());
    hash.update([0]);
    hash.update(num_samples.to_le_bytes());
    hash.update(identity);
    hash.finalize().to_vec()
}

/// A write that accepts a request.
trait Submit: Write<Output = Accepted> {
    fn payload(&self) -> &Stored;
}

struct SubmitCreate {
    tenant: TenantId,
    run: RunId,
    id: RequestId,
    new: NewRun,
    payload: Stored,
    fingerprint: Vec<u8>,
}

impl SubmitCreate {
    fn accepted(&self, arrival: i64, session: SessionId) -> Accepted {
        Accepted::fresh(self.id.clone(), 0, Fresh { arrival, session, sampling: None })
    }
}

impl Submit for SubmitCreate {
    fn payload(&self) -> &Stored {
        &self.payload
    }
}

impl Write for SubmitCreate {
    type Output = Accepted;

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::Runs)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Accepted, Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.new.session).await?;
        let target = Target::Run(&self.run);
        let worker = core.worker_for(&self.new.spec.base_model);
        if let Some(existing) = requests::find_request(conn, &self.tenant, target, 0).await? {
            if existing.id == self.id {
                return Ok(self.accepted(existing.arrival, session.id));
            }
            existing.ensure_same(&self.fingerprint, || {
                format!("model_seq_id {}: the creation of {}", self.new.model_seq_id, self.run)
            })?;
            return Ok(Accepted::known(existing.id, 0));
        }
        ensure_alive(conn, core, &session).await?;
        admission::check_run(conn, core, &self.tenant).await?;
        let now = core.now();
        runs::insert_run(conn, &self.tenant, &self.run, &self.new, worker, now).await?;
        let request = NewRequest {
            id: &self.id,
            tenant: &self.tenant,
            session: &self.new.session,
            target,
            seq_id: 0,
            kind: self.new.kind,
            num_samples: 0,
            fingerprint: &self.fingerprint,
            payload: &self.payload,
            rejected: self.new.rejected.as_ref(),
            worker: None,
            tokens: 0,
        };
        let arrival = requests::insert_request(conn, &request, now).await?;
        let arrival = arrival.ok_or_else(|| Error::store("accept a request", format!("{} exists", self.run)))?;
        if let Some(cause) = &self.new.rejected {
            runs::fail_run(conn, &self.run, &creation_failed(&self.run, cause), false).await?;
        }
        Ok(self.accepted(arrival, session.id))
    }

    fn signals(&self, accepted: &Accepted, signals: &mut Vec<Signal>) {
        if accepted.fresh.is_some() {
            signals.push(Signal::Run(self.run.clone()));
        }
    }

    fn committed(&mut self, accepted: &Accepted, core: &Arc<Core>) {
        let Some(fresh) = &accepted.fresh else { return };
        let base_model = &self.new.spec.base_model;
        tracing::info!(run = %self.run, request = %self.id, tenant = %self.tenant, base_model, "a run was created");
        core.touch(&fresh.session);
        if core.worker_for(&self.new.spec.base_model).is_none() {
            return;
        }
        core.with_queue(|queue| {
            let run = RunQueue::new(
                self.tenant.clone(),
                fresh.session.clone(),
                self.new.spec.base_model.clone(),
                FIRST_EPOCH,
                0,
                History::Loaded,
            );
            queue.add_run(self.run.clone(), run);
            match &self.new.rejected {
                Some(cause) => queue.fail_run(&self.run, creation_failed(&self.run, cause)),
                None => {
                    let payload = (self.new.payload.clone(), Decoded::default());
                    let cost = Cost::new(0, core.now());
                    queue.park(&self.run, 0, self.id.clone(), self.new.kind, cost, Some(payload));
                }
            }
        });
    }
}

struct SubmitRun {
    tenant: TenantId,
    id: RequestId,
    submission: RunSubmission,
    payload: Stored,
    fingerprint: Vec<u8>,
    /// Why a quota refuses it, if one does. Decided once, even when it is written again.
    refused: Option<Option<OpError>>,
}

impl SubmitRun {
    fn rejected(&self) -> Option<&OpError> {
        self.submission.rejected.as_ref().or_else(|| self.refused.as_ref()?.as_ref())
    }
}

impl Submit for SubmitRun {
    fn payload(&self) -> &Stored {
        &self.payload
    }
}

impl Write for SubmitRun {
    type Output = Accepted;

    const UNDO: bool = false;

    fn counts(&self, core: &Core) -> Vec<String> {
        match self.submission.stores {
            Some(_) => admission::counted(core, &self.tenant, Quota::StorageBytes),
            None => Vec::new(),
        }
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Accepted, Error> {
        let now = core.now();
        if self.refused.is_none() {
            self.refused = Some(admission::storage_refusal(conn, core, &self.tenant, &self.submission).await?);
        }
        let RunSubmission { run, seq_id, kind, tokens, .. } = &self.submission;
        let session = runs::session_of_run(conn, &self.tenant, run).await?;
        let target = Target::Run(run);
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
            rejected: self.rejected(),
            worker: None,
            tokens: *tokens,
        };
        let existing = match insert_or_find(conn, core, &request).await? {
            Inserted::New(arrival) => {
                runs::touch_run(conn, run, now).await?;
                return Ok(Accepted::fresh(self.id.clone(), 0, Fresh { arrival, session, sampling: None }));
            }
            Inserted::Known(existing) => existing,
        };
        if existing.id == self.id {
            let fresh = Fresh { arrival: existing.arrival, session, sampling: None };
            return Ok(Accepted::fresh(self.id.clone(), 0, fresh));
        }
        existing.ensure_same(&self.fingerprint, || format!("seq_id {seq_id}: this request of {run}"))?;
        Ok(Accepted::known(existing.id, 0))
    }

    fn signals(&self, accepted: &Accepted, signals: &mut Vec<Signal>) {
        if accepted.fresh.is_some() {
            signals.push(Signal::Run(self.submission.run.clone()));
        }
    }

    fn committed(&mut self, accepted: &Accepted, core: &Arc<Core>) {
        let Some(fresh) = &accepted.fresh else { return };
        tracing::debug!(
            request = %self.id, run = %self.submission.run, seq_id = self.submission.seq_id,
            kind = self.submission.kind.as_str(), refused = self.rejected().is_some(), "a request was accepted"
        );
        let RunSubmission { run, seq_id, kind, payload, decoded, tokens, .. } = &self.submission;
        core.touch(&fresh.session);
        if matches!(self.refused, Some(Some(_))) {
            core.metrics.refused(Quota::StorageBytes, &self.tenant);
        }
        core.with_queue(|queue| {
            if queue.next_seq(run).is_none() {
                // Its lease is free, or another's; or it is being read, perhaps without this request.
                lock(&core.hints).insert(run.clone());
                return core.wake.notify_one();
            }
            match self.rejected() {
                Some(_) => queue.consume(run, *seq_id),
                None => {
                    let payload = (payload.clone(), decoded.clone());
                    let cost = Cost::new(*tokens, core.now());
                    queue.park(run, *seq_id, self.id.clone(), *kind, cost, Some(payload));
                }
            }
        });
    }
}

struct SubmitSample {
    tenant: TenantId,
    id: RequestId,
    submission: SampleSubmission,
    payload: Stored,
    fingerprint: Vec<u8>,
    /// Whether the worker of this process takes it at once.
    taken: bool,
}

impl SubmitSample {
    async fn sampling(&self, conn: &mut Conn, core: &Core) -> Result<Arc<SamplingSession>, Error> {
        let id = &self.submission.sampling_session;
        match core.samplers.get(&self.tenant, id) {
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
            target: Target::Sampling(sampling_session),
            seq_id: *seq_id,
            kind: RequestKind::Sample,
            num_samples: *num_samples,
            fingerprint: &self.fingerprint,
            payload: &self.payload,
            rejected: None,
            worker: core.worker_for(&sampling.base_model).filter(|_| lock(&core.queue).can_sample(sampling)),
            tokens: *tokens,
        }
    }

    async fn insert(
        &mut self,
        conn: &mut Conn,
        core: &Core,
        sampling: Arc<SamplingSession>,
    ) -> Result<Accepted, Error> {
        let request = self.request(core, &sampling);
        let taken = request.worker.is_some();
        let existing = match insert_or_find(conn, core, &request).await? {
            Inserted::New(arrival) => return Ok(self.fresh(arrival, taken, sampling)),
            Inserted::Known(existing) => existing,
        };
        if existing.id == self.id {
            // Written by a commit of which nobody heard; since then others may have taken it.
            return Ok(self.fresh(existing.arrival, false, sampling));
        }
        let SampleSubmission { sampling_session, seq_id, .. } = &self.submission;
        existing.ensure_same(&self.fingerprint, || format!("seq_id {seq_id}: this sample of {sampling_session}"))?;
        Ok(Accepted::known(existing.id, existing.num_samples))
    }

    fn fresh(&mut self, arrival: i64, taken: bool, sampling: Arc<SamplingSession>) -> Accepted {
        self.taken = taken;
        let fresh = Fresh { arrival, session: sampling.session.clone(), sampling: Some(sampling) };
        Accepted::fresh(self.id.clone(), self.submission.num_samples, fresh)
    }
}

impl Submit for SubmitSample {
    fn payload(&self) -> &Stored {
        &self.payload
    }
}

impl Write for SubmitSample {
    type Output = Accepted;

    const UNDO: bool = false;

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::QueuedTokens)
    }

    // What counts against a quota is counted one by one.
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
        // Who takes what was decided before; the answers must not differ from what is written.
        let taken: BTreeSet<RequestId> =
            new.iter().filter(|new| new.worker.is_some()).map(|new| new.id.clone()).collect();
        let mut outputs = Vec::with_capacity(writes.len());
        for (write, sampling) in writes.into_iter().zip(samplings) {
            outputs.push(match (sampling, arrivals.get(&write.id)) {
                (Ok(sampling), Some(arrival)) => Ok(write.fresh(*arrival, taken.contains(&write.id), sampling)),
                // It was there before, or its session accepts nothing more.
                (Ok(sampling), None) => write.insert(conn, core, sampling).await,
                (Err(error), _) => Err(error),
            });
        }
        Ok(outputs)
    }

    fn signals(&self, accepted: &Accepted, signals: &mut Vec<Signal>) {
        if accepted.fresh.is_some() && !self.taken {
            signals.push(Signal::Samples);
        }
    }

    fn committed(&mut self, accepted: &Accepted, core: &Arc<Core>) {
        let Some(Fresh { arrival, session, sampling: Some(sampling) }) = &accepted.fresh else { return };
        tracing::debug!(
            request = %self.id, sampling_session = %self.submission.sampling_session,
            seq_id = self.submission.seq_id, "a sample was accepted"
        );
        core.touch(session);
        if !self.taken {
            return core.wake.notify_one();
        }
        let sample = Claimed {
            cost: Cost::new(self.submission.tokens, core.now()),
            arrival: *arrival,
            request: self.id.clone(),
            tenant: self.tenant.clone(),
            seq_id: self.submission.seq_id,
            claim: FIRST_EPOCH,
            sampling: Arc::clone(sampling),
        };
        let payload = Some((self.submission.payload.clone(), self.submission.decoded.clone()));
        core.with_queue(|queue| {
            // What it samples from may have left memory meanwhile.
            if queue.can_sample(&sample.sampling) {
                queue.add_sample(sample, payload);
            } else {
                core.record(ReleaseSamples { samples: vec![(sample.request, sample.claim)], quiet: false });
            }
        });
    }
}
