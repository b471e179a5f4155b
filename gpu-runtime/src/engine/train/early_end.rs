//! The early end of passes and of evaluations of losses for requests that nobody waits for.

use std::collections::BTreeMap;

use trainyard_protocol::{IsAbandoned, RequestId, RunId};

use super::plan::MicrobatchPlan;
use super::{Outcomes, Trainer};
use crate::backend::Backend;
use crate::engine::run::TrainingRun;
use crate::interrupt::Interrupt;
use crate::model::{EarlyEnd, FailedDatum};

impl<B: Backend> Trainer<B> {
    /// Tells which requests nobody waits for; of several ranks only the first one, and threads beside it, know.
    pub(in crate::engine) fn is_abandoned(&self) -> Option<&IsAbandoned> {
        self.is_abandoned.as_ref()
    }

    /// The same for work that ranks could not end at the same point: `None` on several ranks, where it goes on.
    pub(in crate::engine) fn is_abandoned_on_one_rank(&self) -> Option<&IsAbandoned> {
        self.is_abandoned().filter(|_| self.ranks.is_single())
    }

    /// Ends the evaluation of a request's losses.
    pub(super) fn loss_interrupt(&self, request: &RequestId) -> Interrupt {
        Interrupt::of(self.is_abandoned_on_one_rank(), request)
    }

    /// Ends a pass that nobody waits for. It goes on while somebody does: numbers do not depend on whoever has gone.
    pub(super) fn early_end(&self, runs: &BTreeMap<RunId, TrainingRun<B>>, plan: &MicrobatchPlan) -> EarlyEnd {
        let tasks = || plan.parts.iter().map(|part| &self.tasks[part.task]);
        let interrupts = tasks().map(|task| Interrupt::of(self.is_abandoned.as_ref(), &task.id)).collect();
        let end = EarlyEnd::new(&self.ranks, Interrupt::all_of(interrupts));
        let leader = tasks().next().and_then(|task| Some((task, runs.get(&task.run)?)));
        match leader {
            // Replicas that gather a run's parameters decide in the steps of the pass.
            Some((task, run)) if !run.is_divided() => {
                let blocks = run.base.config().num_layers();
                end.of_blocks(blocks, task.trains, plan.saved.repetitions(blocks))
            }
            _ => end,
        }
    }

    /// The outcomes of a pass, in which all fail if it has ended early on any rank.
    pub(super) fn outcomes(outcomes: Outcomes, end: &EarlyEnd) -> Outcomes {
        if !end.has_come() {
            return outcomes;
        }
        let failed = |part: Option<_>| part.map(|_| Err(FailedDatum::ended_early()));
        outcomes.into_iter().map(failed).collect()
    }
}
