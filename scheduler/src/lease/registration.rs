//! Registration of a worker, which takes part until it deregisters or its lease expires.

use std::sync::Arc;
use std::time::Duration;

use crate::context::core::{Core, Subject};
use crate::execution::crashes::WorkerEnd;
use crate::processes::signals::Signal;
use crate::store::db::{Conn, Database, RowScope};
use crate::store::leases::{self, FreedLeases};
use crate::store::{numerics, workers};
use crate::writer::write::Write;
use crate::{EngineReport, Error};

impl Core {
    /// Returns whether the worker of this process is registered.
    pub(super) fn has_started(&self) -> bool {
        self.heartbeats.incarnation() > 0
    }

    /// Lets the worker of this process, if there is one, take part.
    pub(crate) async fn start_worker(self: &Arc<Self>) -> Result<(), Error> {
        if self.options.worker.is_none() {
            return Ok(());
        }
        self.register().await?;
        self.claim_work().await
    }

    /// Registers the worker of this process. Leases of an earlier worker of its name, or with SQLite of any name, are
    /// freed.
    pub(super) async fn register(self: &Arc<Self>) -> Result<(), Error> {
        let Some(worker) = &self.options.worker else { return Ok(()) };
        let Registered { incarnation, freed, contradicted } = self.call(Register).await?;
        self.heartbeats.registered(incarnation);
        self.heartbeats.sent(self.now());
        let (runs, samples) = (freed.runs, freed.samples);
        tracing::info!(worker = worker.id, incarnation, runs, samples, "worker registered; former leases freed");
        for base_model in contradicted {
            tracing::warn!(base_model, "another worker serves different weights under this name");
        }
        Ok(())
    }
}

struct Register;

struct Registered {
    incarnation: i64,
    freed: FreedLeases,
    /// Base models that another worker serves with other weights.
    contradicted: Vec<String>,
}

impl Write for Register {
    type Output = Registered;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        let worker = core.options.worker.as_ref().ok_or(Error::Store("register a worker"))?;
        workers::lock_worker(conn, &worker.id).await?;
        // Only one process uses a SQLite file, so all earlier owners of leases have ended.
        let whose = match core.options.database {
            Database::Sqlite(_) => None,
            Database::Postgres(_) => Some(worker.id.as_str()),
        };
        let freed = leases::release_all(conn, whose, worker.former_end()).await?;
        let incarnation =
            workers::register_worker(conn, &worker.id, &worker.models, &worker.devices, worker.lease).await?;
        numerics::register_numerics(conn, &worker.id, core.numerics.all()).await?;
        let contradicted = numerics::models_of_other_weights(conn, &worker.id).await?;
        Ok(Registered { incarnation, freed, contradicted })
    }

    fn signals(&self, Registered { freed, .. }: &Self::Output, signals: &mut Vec<Signal>) {
        if *freed != FreedLeases::default() {
            signals.push(Signal::Released);
        }
    }
}

/// A write that releases all leases of this worker when the process ends.
pub(crate) struct Deregister;

impl Write for Deregister {
    type Output = FreedLeases;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    // Without the lease, pending results would be refused.
    fn subjects(&self) -> Vec<Subject> {
        vec![Subject::Everything]
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<FreedLeases, Error> {
        let Some(worker) = core.worker_id() else { return Ok(FreedLeases::default()) };
        // Leases of a newer process of the same name are kept.
        let incarnation = core.heartbeats.incarnation();
        if !workers::renew_worker(conn, worker, incarnation, Duration::ZERO, &EngineReport::default()).await? {
            return Ok(FreedLeases::default());
        }
        let freed = leases::release_all(conn, Some(worker), WorkerEnd::Orderly).await?;
        workers::delete_worker(conn, worker).await?;
        Ok(freed)
    }

    fn signals(&self, freed: &FreedLeases, signals: &mut Vec<Signal>) {
        if *freed != FreedLeases::default() {
            signals.push(Signal::Released);
        }
    }
}
