//! Lease rounds: work on leases that a process does periodically, and when it is woken because there is work to claim.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;
use crate::context::core::Core;
use crate::store::requests;

/// Interval at which the state behind notifications is read, in case some were missed.
const REPAIR: Duration = Duration::from_secs(5);

impl Core {
    /// Performs one round. With `repair`, the state behind notifications is read too, in case some were missed.
    pub(crate) async fn lease_round(self: &Arc<Self>, repair: bool) -> Result<(), Error> {
        self.check_schema().await?;
        self.read_clock().await?;
        self.send_heartbeat().await?;
        self.expire_workers().await?;
        if self.has_started() && !self.claims.are_stopped() {
            if repair {
                self.reconcile_leases().await?;
                self.read_all_new_requests().await?;
                self.apply_missed_session_ends().await?;
            }
            self.claim_work().await?;
            self.release_surplus_samples().await?;
            let surplus = self.surplus().await?;
            let (now, idle) = (self.now(), self.options.idle_unload);
            self.with_queue(|queue| queue.evict_runs(now, idle, surplus));
            if repair {
                self.report_numerics_waits().await?;
            }
        }
        if self.is_shared() {
            let open = requests::open_samples(&mut self.system_reader().await?).await?;
            self.open_samples.replace(open);
        }
        if repair && self.is_shared() {
            self.wake_ended().await?;
        }
        Ok(())
    }

    /// Claims requests that this process's worker can execute, and reads new requests of its runs.
    pub(crate) async fn claim_work(self: &Arc<Self>) -> Result<(), Error> {
        self.claims.make_due();
        self.follow_wakeup().await
    }

    /// Handles the wakeup of this process's worker, if it takes part.
    async fn follow_wakeup(self: &Arc<Self>) -> Result<(), Error> {
        if !self.has_started() || self.claims.are_stopped() {
            return Ok(());
        }
        let claims = self.claims.take_due();
        if claims {
            self.claim_runs().await?;
        }
        // This includes requests announced while their run was being claimed.
        for run in self.claims.take_unread() {
            self.read_new_requests(&run).await?;
        }
        if claims { self.claim_samples().await } else { Ok(()) }
    }
}

/// Runs lease rounds until the scheduler is dropped.
pub(crate) async fn run_rounds(core: Weak<Core>) {
    let mut repaired = Instant::now();
    let mut next_round = None;
    loop {
        let Some(strong) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        let round = *next_round.get_or_insert_with(|| Instant::now() + strong.next_period());
        let wakeup = strong.claims.wakeup();
        drop(strong);
        // Rounds take place even if there is work to claim all the time.
        let _ = tokio::time::timeout_at(round, wakeup.woken()).await;
        let Some(core) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        let done = if Instant::now() < round {
            core.follow_wakeup().await
        } else {
            next_round = None;
            let repair = repaired.elapsed() >= REPAIR;
            if repair {
                repaired = Instant::now();
            }
            core.lease_round(repair).await
        };
        if let Err(error) = done
            && !core.is_closed()
        {
            tracing::warn!(%error, "lease round failed; retrying");
        }
    }
}
