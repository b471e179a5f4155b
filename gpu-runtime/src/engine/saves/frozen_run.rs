//! A run's state for a save: shared with the run, or gathered from the ranks that hold parts of it.

use std::borrow::Cow;
use std::sync::Arc;

use super::writer::{Arrays, Contents, FrozenRun, Reads};
use crate::backend::{Backend, Params};
use crate::engine::run::TrainingRun;
use crate::model::zero::replicas::gather;

impl<B: Backend> TrainingRun<B> {
    /// Freezes the parts of the current state that a save of these contents needs: shared copy-on-write, or gathered
    /// from all ranks on the one that writes. `None` on the others. All ranks call it with the same contents.
    pub(crate) fn freeze(&self, backend: &Arc<B>, contents: Contents) -> Option<FrozenRun<B>> {
        let reads =
            self.base.is_alone().then(|| Arc::new(Reads { backend: Arc::clone(backend), fence: backend.fence() }));
        let arrays = |own: &Arc<B::Params>, is_part: bool| match &reads {
            Some(reads) => Some(Arrays::Shared(Arc::clone(reads), Arc::clone(own))),
            None => self.gathered(own, is_part).map(Arrays::Gathered),
        };
        let moments = self.moments.as_ref().filter(|_| contents >= Contents::State);
        let gradient = self.gradient.as_ref().filter(|_| contents >= Contents::Run);
        // Every rank takes part in every gather, whatever came of the last one.
        let masters = arrays(&self.masters, self.is_divided());
        let moments = moments.map(|moments| moments.each_ref().map(|moment| arrays(moment, true)));
        let gradient = gradient.map(|gradient| arrays(&gradient.sum, true));
        let moments = match moments {
            Some([m, v]) => Some([m?, v?]),
            None => None,
        };
        let gradient = match gradient {
            Some(gradient) => Some(gradient?),
            None => None,
        };
        let (base, spec, masters) = (Arc::clone(&self.base), self.spec.clone(), masters?);
        Some(FrozenRun { base, spec, contents, masters, moments, gradient, step: self.step })
    }

    /// Arrays as files contain them, only on the rank that writes files. They are on the host, because a device lacks
    /// memory for those of all ranks. Replicas hold the same arrays, or, if `is_part`, a part each.
    fn gathered(&self, own: &B::Params, is_part: bool) -> Option<Vec<Vec<f32>>> {
        let (base, spec) = (&self.base, &self.spec);
        if base.replicas.is_single() || !is_part {
            return base.gather(spec, |index| own.host(index));
        }
        let mut all = gather(&base.replicas, own, &self.whole_lens())?;
        base.gather(spec, |index| Cow::Owned(std::mem::take(&mut all[index])))
    }
}

#[cfg(test)]
#[path = "frozen_run_tests.rs"]
mod tests;
