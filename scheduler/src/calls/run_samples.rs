//! Samples of runs that are stored for their owners to look at.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::{RequestId, RunId, SamplingSessionId, TenantId};

use crate::context::core::Core;
use crate::context::waiters::Waiter;
use crate::processes::signals::Signal;
use crate::store::db::{Conn, RowScope};
use crate::store::{quotas, run_samples, runs};
use crate::types::stored_samples;
use crate::writer::write::Write;
use crate::{Error, NewRunSample, RunSamples, Scheduler, Timestamp};

/// Registered interest in the stored samples of a run.
pub struct SamplesWatch(Waiter<RunId>);

impl SamplesWatch {
    /// Waits until the stored samples change after [`Scheduler::watch_samples`], here or in another process.
    pub async fn changed(&mut self) {
        self.0.woken().await;
    }
}

impl Scheduler {
    /// Returns the newest stored samples of one of the tenant's runs.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn run_samples(&self, tenant: &TenantId, run: &RunId, limit: u32) -> Result<RunSamples, Error> {
        let conn = &mut self.core.reader_of(tenant).await?;
        let found = runs::run(conn, tenant, run).await?;
        let (count, bytes) = run_samples::count_samples(conn, tenant, run).await?;
        let quota_is_full = match self.core.grants.policy(tenant).max_storage_bytes {
            Some(_) => {
                let stored = quotas::stored_bytes(conn, tenant).await?;
                self.core.grants.policy(tenant).admit_storage(stored, 1).is_err()
            }
            None => false,
        };
        Ok(RunSamples {
            samples: run_samples::newest_samples(conn, tenant, run, i64::from(limit)).await?,
            newest: stored_samples(&found.user_metadata).ok().flatten(),
            count,
            bytes,
            quota_is_full,
        })
    }

    /// Deletes the stored samples of one of the tenant's runs. Returns their number.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn delete_run_samples(&self, tenant: &TenantId, run: &RunId) -> Result<u64, Error> {
        self.write(DeleteSamples { tenant: tenant.clone(), run: run.clone() }).await
    }

    /// Registers interest in a run's stored samples. Call this before reading them, so that nothing is missed.
    pub fn watch_samples(&self, run: &RunId) -> SamplesWatch {
        SamplesWatch(self.core.waiters.await_stored_samples(run))
    }
}

struct DeleteSamples {
    tenant: TenantId,
    run: RunId,
}

impl Write for DeleteSamples {
    type Output = u64;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.tenant)
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<u64, Error> {
        runs::run(conn, &self.tenant, &self.run).await?;
        run_samples::delete_samples_of_run(conn, &self.tenant, &self.run).await
    }

    fn signals(&self, _deleted: &u64, signals: &mut Vec<Signal>) {
        signals.push(Signal::StoredSamples(self.run.clone()));
    }

    fn committed(&mut self, _deleted: &u64, core: &Arc<Core>) {
        core.waiters.stored_samples_changed(&self.run);
    }
}

/// A sample that has just succeeded, and its content to store.
pub(crate) struct EndedSample<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) request: &'a RequestId,
    pub(crate) session: &'a SamplingSessionId,
    pub(crate) new: &'a NewRunSample,
}

/// Stores samples as far as their tenants' storage quotas permit, and deletes those that exceed the run's number. The
/// request succeeds even if its sample is not stored.
pub(crate) async fn store_samples(
    conn: &mut Conn,
    core: &Core,
    samples: &[EndedSample<'_>],
    now: Timestamp,
) -> Result<(), Error> {
    let mut runs: BTreeMap<&RunId, u32> = BTreeMap::new();
    for EndedSample { tenant, request, session, new } in samples {
        let policy = core.grants.policy(tenant);
        if policy.max_storage_bytes.is_some() {
            let stored = quotas::stored_bytes(conn, tenant).await?;
            if let Err(refusal) = policy.admit_storage(stored, new.content.len() as u64) {
                tracing::debug!(%tenant, %request, run = %new.storage.run, %refusal, "sample not stored");
                continue;
            }
        }
        run_samples::insert_sample(conn, tenant, request, session, new, now).await?;
        runs.insert(&new.storage.run, new.storage.newest);
    }
    for (run, newest) in runs {
        run_samples::keep_newest(conn, run, newest).await?;
    }
    Ok(())
}
