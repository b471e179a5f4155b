//! Passes over a run whose parameters replicas divide (ZeRO stage 3): all replicas take the same steps, whichever of them has
//! examples in the pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::RunId;

use super::plan::{MicrobatchPlan, PlanPart};
use super::{Outcomes, Trainer};
use crate::backend::Backend;
use crate::engine::run::TrainingRun;
use crate::fault::{Fault, guarded};
use crate::interrupt::Interrupt;
use crate::model::{GradientSum, PassBounds, TrainGroup, TrainWeights, train_pass_within};

impl<B: Backend> Trainer<B> {
    /// The only part of a pass over such a run; `None` for other passes.
    pub(super) fn divided_part<'p>(
        &self,
        runs: &BTreeMap<RunId, TrainingRun<B>>,
        plan: &'p MicrobatchPlan,
    ) -> Option<&'p PlanPart> {
        let [part] = &plan.parts[..] else { return None };
        runs.get(&self.tasks[part.task].run).filter(|run| run.is_divided()).map(|_| part)
    }

    /// [`Trainer::compute`] for a part whose run replicas divide. Each replica adds its parts of all gradients to the
    /// request's. So a replica takes all steps even without examples, or after its pass panicked: the others wait for
    /// it. `bounds` postpone no loss, because bits depend on what a round contains.
    pub(super) fn compute_divided(
        &mut self,
        backend: &B,
        runs: &mut BTreeMap<RunId, TrainingRun<B>>,
        part: &PlanPart,
        bounds: PassBounds<'_>,
    ) -> Result<Outcomes, Fault> {
        let (replica, task) = (self.replicas.rank(), &mut self.tasks[part.task]);
        let Some(run) = runs.get_mut(&task.run) else { return Ok(vec![None]) };
        let sum = task.trains.then(|| task.grads.take());
        let mut sum = sum.map(|sum| sum.unwrap_or_else(|| GradientSum::new(run.begin_gradient(backend))));
        let mut pass = run.gathered_pass(task.trains);
        let base = Arc::clone(&run.base.weights);
        let (count, end) = (part.counts[replica], bounds.early_end);
        let outcome = guarded("training pass", || {
            (count > 0).then(|| {
                let (loss, data) = (task.loss.clone(), task.next(replica, count));
                let images = task.next_images(replica, count);
                let group = TrainGroup {
                    adapter: None,
                    scalar_head: None,
                    loss,
                    data,
                    images,
                    evaluated: Vec::new(),
                    interrupt: Interrupt::default(),
                    grads: sum.as_mut(),
                };
                let weights = TrainWeights { weights: (&mut pass).into(), base: &base };
                train_pass_within(backend, weights, &mut [group], true, bounds)
            })
        });
        pass.finish(sum.as_mut(), end);
        self.tasks[part.task].grads = sum;
        outcome.map(|outputs| vec![outputs.and_then(|mut outputs| outputs.pop())])
    }
}
