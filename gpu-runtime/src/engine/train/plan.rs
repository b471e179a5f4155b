//! Choice of the requests that share the next microbatch, and of the number of datums that each contributes.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::RunId;

use super::{TrainTask, Trainer};
use crate::backend::{Backend, MicrobatchRows};
use crate::engine::run::TrainingRun;
use crate::loss::MAX_PASS_ELEMENTS;
use crate::model::{EarlyEnd, PassBounds, PassMemory, ROUND_ROWS, Saved};

/// A task's part of a training pass.
pub(super) struct PlanPart {
    /// Index of the task.
    pub(super) task: usize,
    /// Number of the task's next datums that take part, by replica.
    pub(super) counts: Vec<usize>,
}

/// The next training pass on all replicas, each of which plans the same.
#[derive(Default)]
pub(super) struct MicrobatchPlan {
    /// Each task at most once.
    pub(super) parts: Vec<PlanPart>,
    /// What the pass keeps for its backward pass.
    pub(super) saved: Saved,
    /// Tokens of all datums.
    pub(super) rows: usize,
    /// Tokens that it might have had.
    pub(super) capacity: usize,
}

impl<'a> PassBounds<'a> {
    /// Those of a planned pass, whose losses may cost anything.
    pub(super) fn of(plan: &MicrobatchPlan, early_end: &'a EarlyEnd) -> Self {
        Self { saved: plan.saved, allowance: usize::MAX, early_end }
    }
}

/// A microbatch under construction, within a budget of rows and bytes.
struct MicrobatchBuilder {
    /// Whether each task can share the pass with the leader.
    eligible: Vec<bool>,
    plan: MicrobatchPlan,
    memory: PassMemory,
    /// Number of rows of each replica.
    rows: Vec<usize>,
    /// Elements of the custom losses of each replica.
    elements: Vec<usize>,
    /// Maximum number of elements of custom losses of one replica.
    max_elements: usize,
    /// Maximum number of rows of one replica.
    max_rows: usize,
    /// Tokens that a replica might have had.
    capacity: usize,
    /// Bytes of each task's adapter and gradient in the pass.
    own_bytes: Vec<usize>,
    /// Bytes left for adapters and gradients of further tasks.
    remaining_bytes: usize,
    /// Whether replicas divide the parameters of the leader's run.
    is_divided: bool,
}

impl<B: Backend> Trainer<B> {
    /// The next microbatch. Its leader is the oldest request of the tenant whose turn it is; requests that can share a pass
    /// with it fill the rest by fair share.
    pub(super) fn plan(&mut self, runs: &BTreeMap<RunId, TrainingRun<B>>) -> MicrobatchPlan {
        let Self { tasks, fair_share, microbatch, activation_bytes, replicas, .. } = self;
        let replicas = replicas.world();
        let mut round = None;
        let mut batch: Option<MicrobatchBuilder> = None;
        fair_share.fill(tasks.iter().filter(|task| task.is_ready()).map(|task| &task.share), |tenant| {
            if batch.is_none() {
                let leader = tasks.iter().find(|task| task.is_ready() && task.share.name == *tenant)?;
                let is_divided = runs.get(&leader.run).is_some_and(TrainingRun::is_divided);
                round = (is_divided && leader.trains).then(|| leader.share.clone());
                let bytes = *activation_bytes;
                batch = Some(MicrobatchBuilder::led_by(leader, tasks, runs, *microbatch, bytes, replicas)?);
            }
            batch.as_mut().and_then(|batch| batch.add(tasks, tenant))
        });
        // Whatever the leader's credit, a round is complete: bits depend on it.
        if let (Some(batch), Some(share)) = (&mut batch, round) {
            while let Some(charge) = batch.add(tasks, &share.name) {
                fair_share.charge(&share.name, charge);
            }
        }
        batch.map_or_else(MicrobatchPlan::default, |batch| MicrobatchPlan {
            saved: batch.saved(*activation_bytes),
            rows: batch.rows.iter().sum(),
            capacity: batch.rows.iter().map(|rows| batch.capacity.max(*rows)).sum(),
            ..batch.plan
        })
    }
}

impl MicrobatchBuilder {
    /// An empty microbatch for what can share a pass with `leader`. `None` if its run is not loaded.
    fn led_by<B: Backend>(
        leader: &TrainTask<B>,
        tasks: &[TrainTask<B>],
        runs: &BTreeMap<RunId, TrainingRun<B>>,
        microbatch: MicrobatchRows,
        activation_bytes: usize,
        replicas: usize,
    ) -> Option<Self> {
        let lead_run = runs.get(&leader.run)?;
        let alone = leader.is_quarantined() || lead_run.is_full();
        let same_weights = |run: &TrainingRun<B>| {
            let alike = Arc::ptr_eq(run.weights(), lead_run.weights()) && run.spec.head == lead_run.spec.head;
            alike && !run.is_full()
        };
        let can_share_pass = |task: &TrainTask<B>| {
            task.is_ready()
                && task.trains == leader.trains
                && !task.is_quarantined()
                && runs.get(&task.run).is_some_and(same_weights)
        };
        let eligible: Vec<bool> =
            tasks.iter().map(|task| task.id == leader.id || (!alone && can_share_pass(task))).collect();
        let candidates = tasks.iter().zip(&eligible).filter(|(_, eligible)| **eligible);
        let adapters = candidates.filter_map(|(task, _)| runs.get(&task.run)?.spec.lora.as_ref());
        let memory = PassMemory::of(&lead_run.base.model, adapters);
        let capacity = microbatch.of(leader.trains);
        let max_rows = match leader.trains {
            // Gradients of a round are added up over the replicas: its content depends only on the request, and blocks
            // whose activations do not fit are recomputed.
            true if lead_run.is_divided() => ROUND_ROWS,
            true => memory.rows_within(activation_bytes, capacity),
            false => capacity,
        };
        let own = |task: &TrainTask<B>| runs.get(&task.run).map_or(0, |run| run.pass_bytes(task.trains));
        let own_bytes = tasks.iter().map(own).collect();
        Some(Self {
            eligible,
            plan: MicrobatchPlan::default(),
            memory,
            rows: vec![0; replicas],
            elements: vec![0; replicas],
            // Bits of a round depend on what is in it.
            max_elements: if leader.trains && lead_run.is_divided() { usize::MAX } else { MAX_PASS_ELEMENTS },
            max_rows,
            capacity,
            own_bytes,
            remaining_bytes: activation_bytes,
            is_divided: lead_run.is_divided(),
        })
    }

    /// What a pass over the microbatch keeps within `bytes`.
    fn saved(&self, bytes: usize) -> Saved {
        let rows = self.rows.iter().copied().max().unwrap_or(0);
        match self.is_divided {
            true => self.memory.saved_once_within(rows, bytes),
            false => self.memory.saved_within(rows, bytes),
        }
    }

    /// Adds the next datum of the oldest request of a tenant that has one that fits, and returns the tokens to charge for it. The
    /// first datum of a replica is added whatever its size, and the first one of all whatever the size of its adapter and
    /// gradient; others only within the budget of rows, bytes and elements.
    fn add<B: Backend>(&mut self, tasks: &[TrainTask<B>], tenant: &str) -> Option<usize> {
        let is_empty = self.rows.iter().all(|rows| *rows == 0);
        // Those with the fewest rows first.
        let mut replicas: Vec<usize> = (0..self.rows.len()).collect();
        replicas.sort_by_key(|replica| self.rows[*replica]);
        let (i, replica, cost) = tasks.iter().enumerate().find_map(|(i, task)| {
            if !self.eligible[i] || *task.share.name != *tenant {
                return None;
            }
            let part = self.plan.parts.iter().find(|part| part.task == i);
            if part.is_none() && !is_empty && self.own_bytes[i] > self.remaining_bytes {
                return None;
            }
            replicas.iter().find_map(|&replica| {
                let taken = part.map_or(0, |part| part.counts[replica]);
                let cost = task.cost_ahead(replica, taken)?;
                let (held, elements) = (self.rows[replica], self.elements[replica].saturating_add(cost.elements));
                let fits = held + cost.rows <= self.max_rows && elements <= self.max_elements;
                (held == 0 || fits).then_some((i, replica, cost))
            })
        })?;
        match self.plan.parts.iter_mut().find(|part| part.task == i) {
            Some(part) => part.counts[replica] += 1,
            None => {
                let mut counts = vec![0; self.rows.len()];
                counts[replica] = 1;
                self.plan.parts.push(PlanPart { task: i, counts });
                self.remaining_bytes = self.remaining_bytes.saturating_sub(self.own_bytes[i]);
            }
        }
        self.rows[replica] += cost.rows;
        self.elements[replica] = self.elements[replica].saturating_add(cost.elements);
        Some(cost.charge)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
