//! Accepts requests to create runs.

use std::sync::Arc;

use trainyard_protocol::{RequestId, RunId, SessionId, TenantId};

use super::accepted::{Accepted, FIRST_EPOCH, Fresh, Submit, fingerprint};
use crate::calls::sessions::ensure_alive;
use crate::context::core::Core;
use crate::processes::signals::Signal;
use crate::queue::{AcceptedRequest, History, RunQueue, creation_failed};
use crate::quotas::{Cost, admission};
use crate::store::blobs::StoredBytes;
use crate::store::db::{Conn, RowScope};
use crate::store::requests::{self, NewRequest, RequestTarget};
use crate::store::room::{self, Bounded};
use crate::store::{runs, sessions};
use crate::types::stored_samples;
use crate::writer::write::Write;
use crate::{Decoded, Error, NewRun, Quota, RequestKind, Scheduler, Submitted};

impl Scheduler {
    /// Accepts the creation of a run, identified by (session, model_seq_id).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session, [`Error::SessionFinished`], [`Error::Mismatch`] if it was submitted
    /// before with other content, [`Error::Invalid`] for metadata that asks for something impossible.
    pub async fn submit_create(&self, tenant: &TenantId, new: NewRun) -> Result<(RunId, Submitted), Error> {
        if !matches!(new.kind, RequestKind::CreateModel | RequestKind::LoadWeights) {
            return Err(Error::Invalid(format!("a {} request does not create a run", new.kind.as_str())));
        }
        stored_samples(&new.user_metadata).map_err(|error| Error::Invalid(error.to_string()))?;
        let run = RunId::of_session(&new.session, new.model_seq_id);
        let fingerprint = fingerprint(new.kind, 0, &new.identity);
        let (id, payload) = self.store_payload(&new.payload).await?;
        let write = SubmitCreate { tenant: tenant.clone(), run: run.clone(), id, new, payload, fingerprint };
        let submitted = self.submit(write).await;
        self.core.count_refusal(tenant, &submitted);
        Ok((run, submitted?))
    }
}

struct SubmitCreate {
    tenant: TenantId,
    run: RunId,
    id: RequestId,
    new: NewRun,
    payload: StoredBytes,
    fingerprint: Vec<u8>,
}

impl SubmitCreate {
    fn accepted(&self, arrival: i64, session: SessionId, worker: Option<&str>) -> Accepted {
        let owner = worker.map(str::to_owned);
        Accepted::fresh(self.id.clone(), 0, Fresh { arrival, session, owner, sampling: None })
    }
}

impl Submit for SubmitCreate {
    fn payload(&self) -> &StoredBytes {
        &self.payload
    }
}

impl Write for SubmitCreate {
    type Output = Accepted;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        admission::counted(core, &self.tenant, Quota::Runs)
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Accepted, Error> {
        let session = sessions::session_row(conn, &self.tenant, &self.new.session).await?;
        let target = RequestTarget::Run(&self.run);
        let worker = core.worker_for(&self.new.spec.base_model);
        if let Some(existing) = requests::find_request(conn, &self.tenant, target, 0).await? {
            if existing.id == self.id {
                return Ok(self.accepted(existing.arrival, session.id, worker));
            }
            existing.ensure_same(&self.fingerprint, || {
                format!("model_seq_id {}: the creation of {}", self.new.model_seq_id, self.run)
            })?;
            return Ok(Accepted::known(existing.id, 0));
        }
        ensure_alive(conn, core, &session).await?;
        room::ensure_room(conn, Bounded::Runs, self.new.session.as_str()).await?;
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
            payload_bytes: self.new.payload.len(),
            rejected: self.new.rejected.as_ref(),
            worker: None,
            tokens: 0,
            stores: None,
            recorded: false,
        };
        let arrival = requests::insert_request(conn, &request, now).await?;
        let arrival = arrival.ok_or_else(|| Error::store("accept a request", format!("{} exists", self.run)))?;
        if let Some(cause) = &self.new.rejected {
            runs::fail_run(conn, &self.run, &creation_failed(&self.run, cause), false).await?;
        }
        Ok(self.accepted(arrival, session.id, worker))
    }

    fn signals(&self, accepted: &Accepted, signals: &mut Vec<Signal>) {
        if let Some(fresh) = &accepted.fresh {
            signals.push(Signal::Run(self.run.clone(), fresh.owner.clone()));
        }
    }

    fn committed(&mut self, accepted: &Accepted, core: &Arc<Core>) {
        let Some(fresh) = &accepted.fresh else { return };
        let base_model = &self.new.spec.base_model;
        tracing::info!(run = %self.run, request = %self.id, tenant = %self.tenant, base_model, "run created");
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
            queue.add_run(self.run.clone(), run.with_memory(core.run_memory(&self.new.spec)));
            match &self.new.rejected {
                Some(cause) => queue.fail_run(&self.run, creation_failed(&self.run, cause)),
                None => {
                    let payload = Some((self.new.payload.clone(), Decoded::default()));
                    let (request, cost) = (self.id.clone(), Cost::new(0, core.now()));
                    queue.enqueue(&self.run, 0, AcceptedRequest { request, kind: self.new.kind, cost, payload });
                }
            }
        });
    }
}
