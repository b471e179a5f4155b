//! Compares the leases and claims of the store with the queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use trainyard_protocol::{RequestId, RunId};

use super::release::{ReleaseRun, ReleaseSamples};
use crate::Error;
use crate::context::core::Core;
use crate::store::leases;

/// Number that stands for a claim missing from the store.
const NO_CLAIM: i64 = -1;

/// Differences between the store and the queue.
#[derive(Default)]
struct Differences {
    /// Leases that only the store contains, with their epochs.
    runs: Vec<(RunId, i64)>,
    /// Claims that only the store contains, with their numbers.
    samples: Vec<(RequestId, i64)>,
    /// Samples of the queue that have ended, or passed to another worker.
    ended: Vec<RequestId>,
}

impl Differences {
    fn names(&self) -> BTreeSet<String> {
        let runs = self.runs.iter().map(|(run, epoch)| name(run.as_str(), *epoch));
        let samples = self.samples.iter().map(|(id, claim)| name(id.as_str(), *claim));
        let ended = self.ended.iter().map(|id| name(id.as_str(), NO_CLAIM));
        runs.chain(samples).chain(ended).collect()
    }
}

impl Core {
    /// Compares leases and claims of the store with the queue. They may differ for a moment. A difference that is found
    /// twice is an unconfirmed lease, for example because the connection broke after a commit, and is released.
    pub(crate) async fn reconcile_leases(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = self.worker_id() else { return Ok(()) };
        let found = self.lease_differences(worker).await?;
        let before = self.claims.replace_unconfirmed(found.names());
        let Differences { runs, samples, ended } = found;
        for request in ended.into_iter().filter(|id| before.contains(&name(id.as_str(), NO_CLAIM))) {
            tracing::info!(%request, "dropping sample: it ended or passed to another worker");
            self.with_queue(|queue| queue.drop_sample(&request));
        }
        for (run, epoch) in runs.into_iter().filter(|(run, epoch)| before.contains(&name(run.as_str(), *epoch))) {
            tracing::info!(%run, epoch, "releasing unconfirmed lease");
            self.record(ReleaseRun { run, epoch });
        }
        let samples: Vec<_> =
            samples.into_iter().filter(|(id, claim)| before.contains(&name(id.as_str(), *claim))).collect();
        if !samples.is_empty() {
            tracing::info!(samples = samples.len(), "releasing unconfirmed claims");
            self.record(ReleaseSamples { samples, quiet: false });
        }
        Ok(())
    }

    async fn lease_differences(&self, worker: &str) -> Result<Differences, Error> {
        let conn = &mut self.system_reader().await?;
        let (runs, samples) = (leases::owned_runs(conn, worker).await?, leases::owned_samples(conn, worker).await?);
        let queue = self.queue.read();
        let owned: BTreeSet<&RequestId> = samples.iter().map(|(id, _)| id).collect();
        let ended = queue.sample_ids().into_iter().filter(|id| !owned.contains(id)).collect();
        Ok(Differences {
            ended,
            runs: runs.into_iter().filter(|(run, _)| queue.next_seq(run).is_none()).collect(),
            samples: samples.into_iter().filter(|(id, _)| !queue.has_sample(id)).collect(),
        })
    }
}

/// Returns the name of a lease or claim with its epoch or number.
fn name(id: &str, number: i64) -> String {
    format!("{id} {number}")
}
