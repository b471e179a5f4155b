//! Ties runs to the numerics that decide the bits of their results: which workers may continue a run, and reports of
//! runs that wait.

use std::collections::BTreeMap;

use trainyard_protocol::{Numerics, RequestId, TenantId};

use crate::context::core::Core;
use crate::store::numerics::{self, StoredNumerics};
use crate::store::{leases, workers};
use crate::{Error, NumericsMismatch, Scheduler, WorkerWait};

impl Scheduler {
    /// Sets the numerics of this process's worker by base model. The worker never continues a run of other weights, and
    /// continues runs with other numerics only according to [`NumericsMismatch`]. Call this before the worker takes
    /// part; the first value stays. Runs of a base model that is absent are not compared.
    pub fn compute_with(&self, numerics: BTreeMap<String, Numerics>) {
        self.core.numerics.set(numerics);
    }

    /// Returns the kind of worker that is missing, if a queued request waits although no worker has it.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn worker_wait(&self, tenant: &TenantId, request: &RequestId) -> Result<Option<WorkerWait>, Error> {
        let conn = &mut self.core.reader_of(tenant).await?;
        let Some(needs) = numerics::needs_of_queued(conn, tenant, request).await? else { return Ok(None) };
        let model = needs.model;
        let workers = workers::live_workers(conn).await?;
        let serving: Vec<_> = workers.iter().filter_map(|worker| worker.models.get(&model)).collect();
        if serving.is_empty() {
            return Ok(Some(WorkerWait::NotServed { model }));
        }
        let Some(recorded) = needs.numerics.filter(|recorded| !serving.contains(&&Some(recorded.clone()))) else {
            return Ok(None);
        };
        let served: Vec<_> = serving.into_iter().flatten().collect();
        if !served.iter().any(|served| served.weights == recorded.weights) {
            return Ok(Some(WorkerWait::OtherWeights { model }));
        }
        let mut served: Vec<String> = served.into_iter().map(|served| served.arithmetic.clone()).collect();
        served.sort_unstable();
        served.dedup();
        Ok(Some(WorkerWait::OtherArithmetic { model, recorded: recorded.arithmetic, served }))
    }
}

impl Core {
    /// Returns the numerics of a base model here, in the form of rows.
    pub(super) fn stored_numerics(&self, model: &str) -> Option<StoredNumerics> {
        self.numerics.of(model).map(StoredNumerics::from)
    }

    /// Returns whether this process's worker continues runs that were computed differently.
    pub(super) fn continues_others(&self) -> bool {
        let worker = self.options.worker.as_ref();
        worker.is_some_and(|worker| worker.numerics_mismatch == NumericsMismatch::Continue)
    }

    /// Counts the runs that wait for a worker with their numerics, and logs each of them once.
    pub(super) async fn report_numerics_waits(&self) -> Result<(), Error> {
        let Some(worker) = &self.options.worker else { return Ok(()) };
        let conn = &mut self.system_reader().await?;
        let continues = self.continues_others();
        let waiting = leases::runs_of_other_numerics(conn, &worker.id, &worker.models, continues).await?;
        self.metrics.set_waiting_for_numerics(waiting.len());
        let waiting = waiting.into_iter().map(|waiting| (waiting.run.clone(), waiting)).collect::<BTreeMap<_, _>>();
        let before = self.numerics.replace_waiting(waiting.keys().cloned().collect());
        for (run, waits) in waiting.iter().filter(|(run, _)| !before.contains(run)) {
            let here = self.stored_numerics(&waits.model);
            let (weights, arithmetic) = here.map(|here| (here.weights, here.arithmetic)).unzip();
            tracing::warn!(
                %run, base_model = waits.model, recorded_weights = waits.recorded.weights,
                recorded_arithmetic = waits.recorded.arithmetic, weights, arithmetic,
                "run waits: no worker has the numerics with which it was computed"
            );
        }
        Ok(())
    }
}
