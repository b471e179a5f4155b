//! A pass over a run whose parameters replicas divide (ZeRO stage 3): each unit is gathered before it is used and freed after, and
//! its gradients are reduced to the replicas' parts as soon as they are complete.

use std::collections::VecDeque;
use std::sync::Arc;

use super::part_exchange::{gather_params, offer_params, reduce_parts};
pub(crate) use super::units::Unit;
use super::units::{Step, Units};
use crate::backend::Backend;
use crate::collective::{Extent, Ranks};
use crate::config::LoadError;
use crate::model::block_weights::BlockWeights;
use crate::model::early_end::EarlyEnd;
use crate::model::gradient::GradientSum;
use crate::model::param_value::ParamValue;
use crate::model::params::TrainedParams;
use crate::model::scalar_head::RunHead;
use crate::model::weights::{Model, Weights};

/// One replica's part in such a pass. All replicas take the same steps, whatever each of them computes: one that has no examples,
/// whose loss failed or whose pass panicked takes those that are left with [`GatheredPass::finish`].
pub(crate) struct GatheredPass<B: Backend> {
    model: Arc<Model<B>>,
    replicas: Ranks,
    /// This replica's parts of the trained parameters.
    masters: Arc<B::Params>,
    units: Units,
    /// Steps that are left.
    steps: VecDeque<Step>,
}

impl<B: Backend> GatheredPass<B> {
    /// The pass of a run that trains all parameters `what`; `masters` are this replica's parts of them.
    pub(crate) fn new<'a>(
        model: &Arc<Model<B>>,
        replicas: &Ranks,
        what: impl Into<TrainedParams<'a>>,
        masters: &Arc<B::Params>,
        trains: bool,
    ) -> Self {
        let units = Units::of(&model.table, &model.table.trained(&model.config, what));
        let steps = units.steps(trains);
        Self { model: Arc::clone(model), replicas: replicas.clone(), masters: Arc::clone(masters), units, steps }
    }

    pub(crate) fn model(&self) -> &Arc<Model<B>> {
        &self.model
    }

    /// Takes the steps that are left, with nothing of its own, and adds this replica's parts of the others' gradients to `sum`.
    pub(crate) fn finish(mut self, mut sum: Option<&mut GradientSum<B>>, early_end: &EarlyEnd) {
        for step in std::mem::take(&mut self.steps) {
            match (step, &mut sum) {
                (Step::Decide, _) if early_end.decide() => return,
                (Step::Decide, _) => {}
                (Step::Gather(unit), _) => {
                    offer_params(&self.replicas, &self.units.gathered(unit), &*self.masters);
                }
                (Step::Reduce(unit), Some(sum)) => {
                    reduce_parts(&self.replicas, &self.units.reduced(unit), None, &mut sum.values);
                }
                // Passes that do not train have no such steps.
                (Step::Reduce(_), None) => {}
            }
        }
    }

    /// # Panics
    /// Where the pass takes another step than the one whose turn it is: other replicas wait in that.
    fn begin(&mut self, step: Step) {
        assert_eq!(self.steps.front(), Some(&step), "the steps of a pass are those of all replicas");
        self.steps.pop_front();
    }

    /// Decides whether the pass ends here; then no replica takes the steps that are left.
    pub(crate) fn ends_early(&mut self, early_end: &EarlyEnd) -> bool {
        if self.steps.front() == Some(&Step::Decide) {
            self.steps.pop_front();
            if early_end.decide() {
                self.steps.clear();
            }
        }
        early_end.has_come()
    }

    /// All elements of a unit's arrays; the others are empty.
    fn gather(&mut self, backend: &B, unit: Unit) -> B::Params {
        self.begin(Step::Gather(unit));
        gather_params(backend, &self.replicas, &self.units.gathered(unit), &*self.masters)
    }

    /// Gathers the token embedding.
    pub(crate) fn embedding(&mut self, backend: &B) -> Weights<B> {
        let params = self.gather(backend, Unit::Embedding);
        ends(backend, &self.model, &params)
    }

    /// Gathers one decoder block.
    pub(crate) fn block(&mut self, backend: &B, layer: usize) -> BlockWeights<B> {
        let params = self.gather(backend, Unit::Block(layer));
        let (config, own) = (&self.model.config, &self.model.table.blocks[layer]);
        let built =
            BlockWeights::build(backend, config, layer, own, &mut |index| Ok(ParamValue::Param(&params, index)));
        let Ok(block) = built else { unreachable!("parameters in memory can be read") };
        block
    }

    /// The final norm with the unembedding, or with the run's scalar head.
    pub(crate) fn head(&mut self, backend: &B) -> (Weights<B>, Option<RunHead<B>>) {
        let params = Arc::new(self.gather(backend, Unit::Head));
        let weights = ends(backend, &self.model, &params);
        (weights, self.units.has_scalar_head().then(|| RunHead::of(&params)))
    }

    /// Zeros for the gradients of a unit; the other arrays are empty.
    pub(crate) fn zeros(&self, backend: &B, unit: Unit) -> B::Params {
        let mut lens = vec![0; self.units.lens().len()];
        for Extent { index, len } in self.units.reduced(unit) {
            lens[index] = len;
        }
        backend.zero_params(&lens)
    }

    /// Zeros for the gradients of the end of the model.
    pub(crate) fn zeros_of_head(&self, backend: &B) -> GradientSum<B> {
        GradientSum::new(self.zeros(backend, if self.units.reduces_head() { Unit::Head } else { Unit::Embedding }))
    }

    /// Reduces the gradients of the end of the model, unless they are to be reduced with the embedding's: then it returns them.
    pub(crate) fn reduce_head(&mut self, own: GradientSum<B>, sum: &mut GradientSum<B>) -> Option<GradientSum<B>> {
        if !self.units.reduces_head() {
            return Some(own);
        }
        self.reduce(Unit::Head, own.values, sum);
        None
    }

    /// Adds this replica's parts of all replicas' gradients of a unit to `sum`.
    pub(crate) fn reduce(&mut self, unit: Unit, own: B::Params, sum: &mut GradientSum<B>) {
        self.begin(Step::Reduce(unit));
        reduce_parts(&self.replicas, &self.units.reduced(unit), Some(&own), &mut sum.values);
    }
}

/// The weights outside of blocks that `params` has.
fn ends<B: Backend>(backend: &B, model: &Arc<Model<B>>, params: &B::Params) -> Weights<B> {
    let Ok(weights) = Weights::ends(backend, model, params) else { unreachable!("parameters in memory can be read") };
    weights
}

/// Gathers all weights of a run whose parameters replicas divide; `masters` are this replica's parts. All replicas call
/// it. Arrays are gathered one at a time.
///
/// # Errors
/// Never: parameters in memory can be read.
pub(crate) fn gathered_weights<B: Backend>(
    backend: &B,
    model: &Arc<Model<B>>,
    replicas: &Ranks,
    masters: &B::Params,
) -> Result<Weights<B>, LoadError> {
    Weights::from_values(backend, model, &mut |index| {
        let arrays = [Extent { index, len: model.table.specs[index].len() }];
        Ok(ParamValue::Own(gather_params(backend, replicas, &arrays, masters), index))
    })
}
