//! Frees the leases of workers whose heartbeats stopped.

use std::sync::Arc;

use tokio::time::Instant;

use crate::Error;
use crate::context::core::Core;
use crate::execution::crashes::WorkerEnd;
use crate::processes::signals::Signal;
use crate::store::db::{Conn, RowScope};
use crate::store::leases::{self, FreedLeases};
use crate::store::workers;
use crate::writer::write::Write;

impl Core {
    /// Frees the leases of workers whose lease expired. After an outage of the store, all workers get the time of a
    /// lease to send a heartbeat, because they could not send one either.
    pub(super) async fn expire_workers(self: &Arc<Self>) -> Result<(), Error> {
        let asked = Instant::now();
        let expired = self.call(ExpireWorkers { asked }).await;
        if expired.is_err() || asked.elapsed() > self.lease_period() {
            self.heartbeats.store_reachable_since(self.now());
        }
        expired.map(drop)
    }

    /// Returns whether the store has been reachable for as long as a lease.
    fn is_store_steady(&self) -> bool {
        self.heartbeats.store_reachable_for(self.now()) >= self.lease_period() * 3
    }
}

/// A write that frees the leases of workers whose lease expired, unless the write itself was late.
struct ExpireWorkers {
    asked: Instant,
}

impl Write for ExpireWorkers {
    type Output = Vec<(String, FreedLeases)>;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let mut all = Vec::new();
        if self.asked.elapsed() > core.lease_period() || !core.is_store_steady() {
            return Ok(all);
        }
        for id in workers::expired_workers(conn, core.worker_id()).await? {
            let freed = leases::release_all(conn, Some(&id), WorkerEnd::Crashed).await?;
            workers::delete_worker(conn, &id).await?;
            all.push((id, freed));
        }
        for id in workers::unregistered_holders(conn, core.worker_id()).await? {
            let freed = leases::release_all(conn, Some(&id), WorkerEnd::Crashed).await?;
            all.push((id, freed));
        }
        Ok(all)
    }

    fn signals(&self, output: &Self::Output, signals: &mut Vec<Signal>) {
        if !output.is_empty() {
            signals.push(Signal::Released);
        }
    }

    fn committed(&mut self, output: &Self::Output, core: &Arc<Core>) {
        for (worker, freed) in output {
            core.metrics.leases_lost.inc_by(freed.runs + freed.samples);
            let (runs, samples) = (freed.runs, freed.samples);
            tracing::warn!(
                worker,
                runs,
                samples,
                "lease expired: worker sent no heartbeat; its runs and samples are free"
            );
        }
        if !output.is_empty() {
            core.wake_claims_of_released();
        }
    }
}
