//! Claims samples for this worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{OpError, SessionId, TenantId};

use super::claim_runs::is_registered;
use super::release::ReleaseSamples;
use super::session_end::apply_session_end;
use crate::context::core::Core;
use crate::queue::{ClaimBudget, ClaimedSample};
use crate::store::db::{Conn, RowScope};
use crate::store::sample_claims::{self, ClaimedSampleRow, OpenSequences, SampleClaim};
use crate::store::{sampling, sessions, workers};
use crate::writer::write::Write;
use crate::{Error, SamplingSession, WorkerOptions};

/// Pause that is longer than another worker's claim takes to commit.
const CONTENTION: Duration = Duration::from_millis(20);

impl Core {
    pub(super) async fn claim_samples(self: &Arc<Self>) -> Result<(), Error> {
        let budget = self.queue.read().claim_budget();
        let free = budget.sequences;
        let Claimed { samples, shared, more, contended } = self.call(ClaimSamples { budget }).await?;
        self.claims.set_shares_samples(shared);
        let (mut touched, mut taken) = (BTreeSet::new(), 0);
        for sample in samples {
            let (request, claim, sequences) = (sample.id.clone(), sample.claim, sample.sequences);
            match self.add_claimed(sample).await {
                Ok(Some(session)) => {
                    taken += sequences;
                    touched.insert(session);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%request, claim, %error, "releasing claim: sample could not be read");
                    self.record(ReleaseSamples { samples: vec![(request, claim)], quiet: false });
                }
            }
        }
        self.with_queue(|queue| queue.samples_claimed(free, taken, more));
        if contended {
            self.wake_claims_after(CONTENTION);
        }
        for session in touched {
            let status = sessions::session_status(&mut self.system_reader().await?, &session).await?;
            self.with_queue(|queue| apply_session_end(queue, &session, &status));
        }
        Ok(())
    }

    /// Returns whether the worker of this process may claim a new sample at once, with its acceptance. If other workers
    /// could execute the sample, each claims only its share.
    pub(crate) fn claims_with_acceptance(&self) -> bool {
        !self.is_shared() || (!self.claims.shares_samples() && self.queue.read().claims_new_samples())
    }

    /// Releases samples beyond this worker's share that its engine has yet to admit, so that other workers can take
    /// them.
    pub(super) async fn release_surplus_samples(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = self.options.worker.as_ref().filter(|_| self.is_shared()) else { return Ok(()) };
        let conn = &mut self.system_reader().await?;
        let share = self.sample_share(conn, worker, &[]).await?;
        self.claims.set_shares_samples(share.is_some());
        if let Some(share) = share.filter(|share| share.surplus > 0) {
            self.with_queue(|queue| queue.release_samples(share.surplus));
        }
        Ok(())
    }

    /// Adds a claimed sample to the queue. Returns its session, or `None` if it can't be executed here.
    async fn add_claimed(self: &Arc<Self>, row: ClaimedSampleRow) -> Result<Option<SessionId>, Error> {
        let sampling = self.sampling_session_of(&row).await?;
        let session = sampling.session.clone();
        if sampling.collected {
            // The sample was accepted while its snapshot was collected.
            let error = OpError::user(self.snapshot_collected(&sampling.id).to_string());
            self.with_queue(|queue| queue.fail_claimed(row.id, row.claim, error));
            return Ok(None);
        }
        if sampling.snapshot_dir.is_none() && !self.queue.read().can_sample(&sampling) {
            // The store names this worker as the owner, but its queue lacks the run; reconciling repairs that.
            self.record(ReleaseSamples { samples: vec![(row.id, row.claim)], quiet: true });
            return Ok(None);
        }
        let ClaimedSampleRow { arrival, id: request, tenant, seq_id, claim, cost, sequences, .. } = row;
        let sample = ClaimedSample { arrival, request, tenant, seq_id, claim, cost, sequences, sampling };
        self.with_queue(|queue| queue.add_sample(sample, None));
        Ok(Some(session))
    }

    async fn sampling_session_of(&self, row: &ClaimedSampleRow) -> Result<Arc<SamplingSession>, Error> {
        // The location of a snapshot's weights may change, so it is not taken from the cache.
        let known = self.sampling_sessions.get(&row.tenant, &row.sampling_session);
        if let Some(known) = known.filter(|known| known.snapshot.is_none()) {
            return Ok(known);
        }
        let conn = &mut self.system_reader().await?;
        let found = Arc::new(sampling::sampling_session(conn, &row.tenant, &row.sampling_session).await?);
        self.sampling_sessions.put(row.tenant.clone(), Arc::clone(&found));
        Ok(found)
    }
}

/// A worker's share, in sequences, of the samples that other workers can execute too: for each base model as many as
/// each of the others.
struct SampleShare {
    /// Sequences that the worker may claim until it has its share.
    missing: usize,
    /// Sequences that the worker has beyond its share.
    surplus: usize,
    /// Sequences that no worker has claimed.
    unclaimed: usize,
    /// Unclaimed sequences that the worker may claim: those of tenants that are not held back by a rate limit here.
    claimable: usize,
}

impl Core {
    /// Computes the share; `None` while no other worker serves one of the base models.
    async fn sample_share(
        &self,
        conn: &mut Conn,
        worker: &WorkerOptions,
        paused: &[TenantId],
    ) -> Result<Option<SampleShare>, Error> {
        let workers = workers::live_workers(conn).await?;
        let serving = |model: &String| workers.iter().filter(|other| other.models.contains_key(model)).count().max(1);
        let alike = |model: &String| {
            let here = self.stored_numerics(model);
            workers.iter().filter(|other| other.models.get(model) == Some(&here)).count().max(1)
        };
        if worker.models.iter().all(|model| serving(model) == 1) {
            return Ok(None);
        }
        let mut share = SampleShare { missing: 0, surplus: 0, unclaimed: 0, claimable: 0 };
        let continues = self.continues_others();
        let open = sample_claims::open_sequences(conn, &worker.id, &worker.models, paused, continues).await?;
        for OpenSequences { model, of_runs, all, held, unclaimed, claimable } in open {
            let part = all.div_ceil(if of_runs { alike(&model) } else { serving(&model) });
            share.missing += part.saturating_sub(held);
            share.surplus += held.saturating_sub(part);
            share.unclaimed += unclaimed;
            share.claimable += claimable;
        }
        Ok(Some(share))
    }
}

struct ClaimSamples {
    budget: ClaimBudget,
}

#[derive(Default)]
struct Claimed {
    samples: Vec<ClaimedSampleRow>,
    /// Whether other workers can execute samples that this one can.
    shared: bool,
    /// Whether there may be more to claim.
    more: bool,
    /// Whether another worker that claimed at the same time had locked the samples that this one chose. That worker
    /// takes only its share and nobody is notified of the rest, so this one must try again.
    contended: bool,
}

impl Write for ClaimSamples {
    type Output = Claimed;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Claimed, Error> {
        let Some(worker) = &core.options.worker else { return Ok(Claimed::default()) };
        if !is_registered(conn, core).await? {
            return Ok(Claimed::default());
        }
        let share = match core.is_shared() {
            true => core.sample_share(conn, worker, &self.budget.paused).await?,
            false => None,
        };
        let ClaimBudget { sequences, newcomers, paused, waiting } = &self.budget;
        let mut claimed = Claimed { shared: share.is_some(), ..Claimed::default() };
        let mut left = *sequences;
        for movable in [false, true] {
            // Samples beyond this worker's share are left to others that can execute them.
            let share = share.as_ref().filter(|_| movable);
            let most = share.map_or(usize::MAX, |share| share.missing);
            let (limit, newcomers) = (left.min(most), (*newcomers).min(most));
            let models = worker.models.as_slice();
            let continues = core.continues_others();
            let claim =
                SampleClaim { worker: &worker.id, models, movable, limit, newcomers, waiting, paused, continues };
            let samples = sample_claims::claim_samples(conn, &claim).await?;
            let taken: usize = samples.iter().map(|sample| sample.sequences).sum();
            claimed.more |= match share {
                Some(share) => taken < share.unclaimed,
                None => taken >= limit,
            };
            claimed.contended |= share.is_some_and(|share| taken < limit.min(share.claimable));
            left = left.saturating_sub(taken);
            claimed.samples.extend(samples);
        }
        Ok(claimed)
    }
}
