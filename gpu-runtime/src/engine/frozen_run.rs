//! A run's state for a save: shared with the run, or gathered from the ranks that hold parts of it.

use std::sync::Arc;

use super::checkpoint_writer::{FrozenRun, Reads};
use super::run::TrainingRun;
use crate::backend::{Backend, Params};
use crate::model::replicas::gather;

impl<B: Backend> TrainingRun<B> {
    /// The current state: a copy-on-write copy, or what all ranks hold, gathered, on the one that writes. `None` on the others.
    pub(super) fn freeze(&self, backend: &Arc<B>) -> Option<FrozenRun<B>> {
        let frozen = |masters, moments, grads| {
            let (base, spec) = (Arc::clone(&self.base), self.spec.clone());
            let reads = Reads { backend: Arc::clone(backend), fence: backend.fence() };
            FrozenRun { reads, base, spec, masters, moments, grads, step: self.step }
        };
        let (moments, sum) = (self.moments.as_ref(), self.gradient.as_ref().map(|gradient| &gradient.sum));
        if self.base.is_alone() {
            return Some(frozen(Arc::clone(&self.masters), moments.cloned(), sum.cloned()));
        }
        // Every rank takes part in every gather, whatever came of the last one.
        let masters = match self.is_divided() {
            true => self.whole_of_parts(backend, &self.masters),
            false => self.whole(backend, &self.masters),
        };
        let moments = moments.map(|moments| moments.each_ref().map(|moment| self.whole_of_parts(backend, moment)));
        let sum = sum.map(|sum| self.whole_of_parts(backend, sum));
        let moments = match moments {
            Some([m, v]) => Some(Arc::new([m?, v?])),
            None => None,
        };
        let sum = match sum {
            Some(sum) => Some(Arc::new(sum?)),
            None => None,
        };
        Some(frozen(Arc::new(masters?), moments, sum))
    }

    /// Arrays that all replicas hold, as files have them: on the rank that writes files alone.
    fn whole(&self, backend: &B, own: &B::Params) -> Option<B::Params> {
        self.base.gather(&self.spec, |index| own.host(index)).map(|all| backend.upload_params(all))
    }

    /// Arrays of which each replica holds a part, likewise.
    fn whole_of_parts(&self, backend: &B, own: &B::Params) -> Option<B::Params> {
        if self.base.replicas.is_single() {
            return self.whole(backend, own);
        }
        let all = gather(&self.base.replicas, own, &self.whole_lens())?;
        self.whole(backend, &backend.upload_params(all))
    }
}
