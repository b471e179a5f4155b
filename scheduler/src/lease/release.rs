//! Releases leases of runs and claims on samples, so that other workers can take them.

use std::sync::Arc;

use trainyard_protocol::{RequestId, RunId};

use crate::Error;
use crate::context::core::{Core, Subject, Urgency};
use crate::processes::signals::Signal;
use crate::store::db::{Conn, RowScope};
use crate::store::leases;
use crate::writer::write::Write;

/// A write that releases the lease of a run that the worker has unloaded.
pub(crate) struct ReleaseRun {
    pub(crate) run: RunId,
    pub(crate) epoch: i64,
}

impl Write for ReleaseRun {
    /// False if the lease had passed to another worker.
    type Output = bool;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn subjects(&self) -> Vec<Subject> {
        vec![Subject::Run(self.run.clone())]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        match &core.options.worker {
            Some(worker) => leases::release_run(conn, &worker.id, &self.run, self.epoch).await,
            None => Ok(false),
        }
    }

    fn signals(&self, released: &bool, signals: &mut Vec<Signal>) {
        if *released {
            signals.push(Signal::Released);
        }
    }

    fn committed(&mut self, released: &bool, core: &Arc<Core>) {
        if *released {
            tracing::info!(run = %self.run, epoch = self.epoch, "lease released");
            // A request for the run may have arrived in the meantime.
            core.claims.wake();
        }
    }
}

/// A write that releases claims on samples that the worker has dropped.
pub(crate) struct ReleaseSamples {
    /// Samples, each with the number of its claim.
    pub(crate) samples: Vec<(RequestId, i64)>,
    /// Whether workers are left without notification, because this worker would be the one to take the samples.
    pub(crate) quiet: bool,
}

impl Write for ReleaseSamples {
    /// Whether any sample was released of which workers are notified.
    type Output = bool;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn rows(&self) -> usize {
        self.samples.len()
    }

    fn subjects(&self) -> Vec<Subject> {
        self.samples.iter().map(|(request, _)| Subject::Request(request.clone())).collect()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        let Some(worker) = core.worker_id() else { return Ok(false) };
        let mut any = false;
        for (request, claim) in &self.samples {
            any |= leases::release_sample(conn, worker, request, *claim).await?;
        }
        Ok(any && !self.quiet)
    }

    fn signals(&self, released: &bool, signals: &mut Vec<Signal>) {
        if *released {
            signals.push(Signal::Samples);
        }
    }

    fn committed(&mut self, released: &bool, core: &Arc<Core>) {
        if *released {
            core.claims.wake();
        }
    }
}
