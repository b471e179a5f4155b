//! Claiming samples.

use std::collections::BTreeSet;
use std::sync::Arc;

use trainyard_protocol::{SessionId, TenantId};

use super::claim_runs::is_registered;
use super::release::ReleaseSamples;
use super::session_end::apply_session_end;
use crate::core::Core;
use crate::lock::lock;
use crate::queue::ClaimedSample;
use crate::store::db::Conn;
use crate::store::leases::{self, ClaimedSampleRow};
use crate::store::{sampling, sessions};
use crate::write::Write;
use crate::{Error, SamplingSession};

/// Samples that a worker holds before it claims no more.
const HELD_SAMPLES: usize = 1024;
/// Samples that it then still claims at once, of tenants of which it has none.
const NEWCOMERS: usize = 64;

impl Core {
    pub(super) async fn claim_samples(self: &Arc<Self>) -> Result<(), Error> {
        loop {
            let (limit, paused) = lock(&self.queue).sample_claim_budget(HELD_SAMPLES, NEWCOMERS);
            let claimed = self.call(ClaimSamples { limit, paused }).await?;
            let count = claimed.len();
            let mut touched = BTreeSet::new();
            for sample in claimed {
                let (request, claim) = (sample.id.clone(), sample.claim);
                match self.add_claimed(sample).await {
                    Ok(session) => drop(touched.insert(session)),
                    Err(error) => {
                        tracing::warn!(%request, claim, %error, "releasing claim: sample could not be read");
                        self.record(ReleaseSamples { samples: vec![(request, claim)], quiet: false });
                    }
                }
            }
            for session in touched {
                let status = sessions::session_status(&mut self.reader().await?, &session).await?;
                self.with_queue(|queue| apply_session_end(queue, &session, &status));
            }
            if count < limit {
                return Ok(());
            }
        }
    }

    async fn add_claimed(self: &Arc<Self>, row: ClaimedSampleRow) -> Result<SessionId, Error> {
        let sampling = self.sampling_session_of(&row).await?;
        let session = sampling.session.clone();
        if sampling.snapshot_dir.is_none() && !lock(&self.queue).can_sample(&sampling) {
            // The store takes the run for this worker's, whose queue does not have it; reconciling repairs that.
            self.record(ReleaseSamples { samples: vec![(row.id, row.claim)], quiet: true });
            return Ok(session);
        }
        let ClaimedSampleRow { arrival, id: request, tenant, seq_id, claim, cost, .. } = row;
        self.with_queue(|queue| {
            queue.add_sample(ClaimedSample { arrival, request, tenant, seq_id, claim, cost, sampling }, None);
        });
        Ok(session)
    }

    async fn sampling_session_of(&self, row: &ClaimedSampleRow) -> Result<Arc<SamplingSession>, Error> {
        // Of a snapshot it changes where the weights are.
        let known = self.sampling_sessions.get(&row.tenant, &row.sampling_session);
        if let Some(known) = known.filter(|known| known.snapshot.is_none()) {
            return Ok(known);
        }
        let conn = &mut self.reader().await?;
        let found = Arc::new(sampling::sampling_session(conn, &row.tenant, &row.sampling_session).await?);
        self.sampling_sessions.put(row.tenant.clone(), Arc::clone(&found));
        Ok(found)
    }
}

struct ClaimSamples {
    limit: usize,
    /// Tenants whose samples would only wait here.
    paused: Vec<TenantId>,
}

impl Write for ClaimSamples {
    type Output = Vec<ClaimedSampleRow>;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        match &core.options.worker {
            Some(_) if !is_registered(conn, core).await? => Ok(Vec::new()),
            Some(worker) => leases::claim_samples(conn, &worker.id, &worker.models, self.limit, &self.paused).await,
            None => Ok(Vec::new()),
        }
    }
}
