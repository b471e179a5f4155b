//! Numerics of this process's worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock};

use trainyard_protocol::{Numerics, RunId};

use crate::context::lock::lock;

/// What decides the bits of the worker's results, and the runs that wait for a worker with theirs.
#[derive(Default)]
pub(crate) struct WorkerNumerics {
    by_model: OnceLock<BTreeMap<String, Numerics>>,
    /// Runs whose wait has been logged.
    waiting: Mutex<BTreeSet<RunId>>,
}

impl WorkerNumerics {
    /// Sets the numerics by base model. The first value stays.
    pub(super) fn set(&self, by_model: BTreeMap<String, Numerics>) {
        let _ = self.by_model.set(by_model);
    }

    /// Returns the numerics of a base model, if they are known.
    pub(super) fn of(&self, model: &str) -> Option<&Numerics> {
        self.by_model.get()?.get(model)
    }

    /// Returns the numerics of all base models that have some.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Numerics)> {
        self.by_model.get().into_iter().flatten()
    }

    /// Replaces the runs that wait, and returns those that waited before.
    pub(super) fn replace_waiting(&self, runs: BTreeSet<RunId>) -> BTreeSet<RunId> {
        std::mem::replace(&mut *lock(&self.waiting), runs)
    }
}
