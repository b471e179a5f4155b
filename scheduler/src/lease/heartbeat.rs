//! Heartbeats of a worker, which renew its leases.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::workers;
use crate::writer::write::Write;
use crate::{EngineReport, Error};

/// Interval of heartbeats in a process without a worker.
const PERIOD: Duration = Duration::from_secs(5);

impl Core {
    /// Prolongs this worker's leases. If they have expired, the worker drops everything and registers again.
    pub(super) async fn send_heartbeat(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = self.options.worker.as_ref().filter(|_| self.has_started()) else { return Ok(()) };
        let _one_at_a_time = self.heartbeats.exclusive().await;
        let incarnation = self.heartbeats.incarnation();
        // If other processes depend on the heartbeat, it does not wait for other writes.
        let valid = match self.is_shared() {
            true => {
                let (conn, engine) = (&mut self.system_reader().await?, self.engine_report());
                workers::renew_worker(conn, &worker.id, incarnation, worker.lease, &engine).await?
            }
            false => self.call(Heartbeat).await?,
        };
        if valid {
            self.heartbeats.sent(self.now());
            return Ok(());
        }
        tracing::warn!(
            worker = worker.id,
            incarnation,
            "lease expired: heartbeat refused, runs passed to other workers"
        );
        self.with_queue(|queue| queue.revoke_all());
        self.register().await
    }

    /// Returns the engine's state for heartbeats.
    fn engine_report(&self) -> EngineReport {
        EngineReport::from(&self.metrics.engine())
    }

    /// Returns the interval of heartbeats and lease rounds: a third of a lease.
    pub(super) fn lease_period(&self) -> Duration {
        self.options.worker.as_ref().map_or(PERIOD, |worker| worker.lease / 3)
    }

    /// Returns the time until the next heartbeat or round, which varies between processes.
    pub(super) fn next_period(&self) -> Duration {
        self.lease_period().mul_f64(0.75) + self.jitter(self.lease_period() / 4)
    }
}

/// Sends heartbeats until the scheduler is dropped, independent of all other work.
pub(crate) async fn send_heartbeats(core: Weak<Core>) {
    loop {
        let Some(strong) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        if strong.options.worker.is_none() || !strong.is_shared() {
            return;
        }
        let wait = strong.next_period();
        drop(strong);
        tokio::time::sleep(wait).await;
        let Some(core) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        if let Err(error) = core.send_heartbeat().await {
            tracing::warn!(%error, "heartbeat failed: leases were not renewed; retrying");
        }
    }
}

/// A write that prolongs the worker's leases; false if they have expired.
struct Heartbeat;

impl Write for Heartbeat {
    type Output = bool;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        let Some(worker) = &core.options.worker else { return Ok(true) };
        let incarnation = core.heartbeats.incarnation();
        workers::renew_worker(conn, &worker.id, incarnation, worker.lease, &core.engine_report()).await
    }
}
