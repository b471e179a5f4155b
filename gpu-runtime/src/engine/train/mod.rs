//! Training requests, divided into microbatches that several runs share.

mod adapter_cache;
mod divided;
mod early_end;
mod loss_thread;
mod plan;
mod results;
mod routing;
mod task;

use std::collections::{BTreeMap, BTreeSet};
#[cfg(test)]
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{
    Completion, ForwardBackward, IsAbandoned, ModelExtents, ModelHead, OpError, RequestId, RunId, TenantShare,
};

use super::fair_share::FairShare;
use super::lockstep::Digest;
use super::run::TrainingRun;
use crate::backend::{Backend, MicrobatchRows};
use crate::collective::Ranks;
use crate::fault::{Fault, guarded};
use crate::interrupt::Interrupt;
use crate::loss::{LossFn, PreparedBatch, PreparedDatum};
use crate::model::{
    EarlyEnd, FailedDatum, GradientSum, GroupOutput, PassBounds, TrainGroup, TrainWeights, train_pass_within,
};
use crate::vision::Embeddings;
use adapter_cache::AdapterCache;
use loss_thread::{Allowance, LossThread};
use plan::{MicrobatchPlan, PlanPart};
use results::finish;
use task::TrainTask;

/// Training requests in progress, in order of arrival. A microbatch takes datums from every request that can share a pass
/// with its leader; results do not depend on how datums are divided into microbatches.
pub(super) struct Trainer<B: Backend> {
    tasks: Vec<TrainTask<B>>,
    fair_share: FairShare,
    adapters: AdapterCache<B>,
    microbatch: MicrobatchRows,
    activation_bytes: usize,
    /// Replicas, which compute the datums of every request together.
    replicas: Ranks,
    /// All ranks of the engine, which take the same steps.
    ranks: Ranks,
    /// Tells which requests nobody waits for.
    is_abandoned: Option<IsAbandoned>,
    allowance: Allowance,
    loss_thread: LossThread,
    stats: TrainStats,
}

/// Results that a replica computed for each part of a [`MicrobatchPlan`]; `None` for parts without a datum of the
/// replica.
type Outcomes = Vec<Option<Result<GroupOutput, FailedDatum>>>;

/// Counters since the start.
#[derive(Clone, Copy, Default)]
pub(super) struct TrainStats {
    pub(super) passes: u64,
    pub(super) tokens: u64,
    /// Sum of the passes' capacities, in tokens.
    pub(super) capacity: u64,
    /// Digest of all log-probabilities.
    pub(super) digest: Digest,
}

impl<B: Backend> Trainer<B> {
    pub(super) fn new(microbatch: MicrobatchRows, activation_bytes: usize) -> Self {
        let MicrobatchRows { training, forward } = microbatch;
        let microbatch = MicrobatchRows { training: training.max(1), forward: forward.max(1) };
        Self {
            tasks: Vec::new(),
            fair_share: FairShare::new(microbatch.training.max(microbatch.forward)),
            adapters: AdapterCache::new(),
            microbatch,
            activation_bytes,
            replicas: Ranks::default(),
            ranks: Ranks::default(),
            is_abandoned: None,
            allowance: Allowance::default(),
            loss_thread: LossThread::on(&Ranks::default()),
            stats: TrainStats::default(),
        }
    }

    /// The trainer of one of these replicas, whose engine executes the same calls as those of all `ranks`.
    pub(super) fn on(self, replicas: &Ranks, ranks: &Ranks) -> Self {
        Self { replicas: replicas.clone(), ranks: ranks.clone(), loss_thread: LossThread::on(ranks), ..self }
    }

    /// Ends passes and evaluations of custom losses for requests that nobody waits for.
    pub(super) fn ask_when_abandoned(&mut self, is_abandoned: IsAbandoned) {
        self.is_abandoned = Some(is_abandoned);
    }

    pub(super) fn stats(&self) -> TrainStats {
        self.stats
    }

    /// Bytes of the gradients of requests in progress.
    pub(super) fn gradient_bytes(&self, runs: &BTreeMap<RunId, TrainingRun<B>>) -> usize {
        let with_gradient = self.tasks.iter().filter(|task| task.grads.is_some());
        with_gradient.filter_map(|task| runs.get(&task.run)).map(TrainingRun::parameter_bytes).sum()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether a request is ready for a pass.
    pub(super) fn is_ready(&self) -> bool {
        self.tasks.iter().any(TrainTask::is_ready)
    }

    /// Stores the losses that were evaluated beside the engine, waiting for them for up to `wait`, and has the next ones
    /// evaluated. Returns the requests that fail because they can't be.
    pub(super) fn advance_losses(&mut self, wait: Duration) -> Vec<Completion> {
        if let Some((id, losses)) = self.loss_thread.finished(wait)
            && let Some(task) = self.tasks.iter_mut().find(|task| task.id == id)
        {
            match losses {
                Ok(losses) => task.store_losses(losses),
                Err(error) => return self.fail(&id, error),
            }
        }
        let is_abandoned = self.is_abandoned_on_one_rank().cloned();
        let Self { tasks, loss_thread, .. } = self;
        match loss_thread.start_next(tasks, |request| Interrupt::of(is_abandoned.as_ref(), request)) {
            Ok(()) => Vec::new(),
            Err((id, error)) => self.fail(&id, error),
        }
    }

    fn fail(&mut self, id: &RequestId, error: OpError) -> Vec<Completion> {
        self.tasks.retain(|task| task.id != *id);
        vec![Completion::new(id.clone(), Err(error))]
    }

    /// The shares of the requests in progress.
    pub(super) fn shares(&self) -> impl Iterator<Item = &TenantShare> {
        self.tasks.iter().map(|task| &task.share)
    }

    /// Drops the requests of a run without completing them.
    pub(super) fn drop_requests(&mut self, run: &RunId) {
        self.adapters.free_recycled();
        self.tasks.retain(|task| task.run != *run);
    }

    /// Drops requests without completing them. Their runs stay as they were.
    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.tasks.retain(|task| !ids.contains(&task.id));
        self.loss_thread.cancel(ids);
    }

    /// Queues a request, with the embeddings of its images.
    ///
    /// # Errors
    /// Fails if it was checked for another model, or is not for a model with this run's head.
    pub(super) fn start(
        &mut self,
        id: RequestId,
        share: TenantShare,
        run: &TrainingRun<B>,
        request: ForwardBackward,
        embeddings: Embeddings<B>,
    ) -> Result<(), OpError> {
        let config = run.base.config();
        let (trains, head, run) = (!request.forward_only, run.spec.head, request.run);
        let extents = ModelExtents { vocab_size: config.vocab_size, context: config.max_position_embeddings };
        let PreparedBatch { loss, data, .. } = request.batch.checked_for(extents)?;
        check_head(&loss, &data, head)?;
        let mut task = TrainTask::new(id, share, run, loss, data, trains, self.replicas.world());
        task.embeddings = embeddings;
        self.tasks.push(task);
        Ok(())
    }

    /// Computes one microbatch and returns the requests that it completed.
    pub(super) fn step(&mut self, backend: &B, runs: &mut BTreeMap<RunId, TrainingRun<B>>) -> Vec<Completion> {
        let orphans = self.fail_orphans(runs);
        if !orphans.is_empty() {
            return orphans;
        }
        let plan = self.plan(runs);
        self.stats.passes += 1;
        self.stats.tokens += plan.rows as u64;
        self.stats.capacity += plan.capacity.max(plan.rows) as u64;
        let end = self.early_end(runs, &plan);
        let own = match self.divided_part(runs, &plan) {
            Some(part) => self.compute_divided(backend, runs, part, PassBounds::of(&plan, &end)),
            None => guarded("training pass", || self.compute(backend, runs, &plan, &end)),
        };
        end.finish();
        // A panic on one replica is one of the pass.
        let all = self.replicas.all_of(own.map(|outcomes| Self::outcomes(outcomes, &end)));
        match all.into_iter().collect::<Result<Vec<Outcomes>, Fault>>() {
            Ok(outcomes) => self.advance(backend, runs, &plan, outcomes),
            Err(fault) => self.isolate(runs, &plan, fault),
        }
    }

    /// Fails the requests whose run is not loaded.
    fn fail_orphans(&mut self, runs: &BTreeMap<RunId, TrainingRun<B>>) -> Vec<Completion> {
        let orphans = self.tasks.extract_if(.., |task| !runs.contains_key(&task.run));
        orphans.map(|task| Completion::new(task.id, Err(OpError::server("the model was unloaded")))).collect()
    }

    /// Runs this replica's part of the pass. On a panic the participants lose their gradients: they must be restarted.
    fn compute(
        &mut self,
        backend: &B,
        runs: &mut BTreeMap<RunId, TrainingRun<B>>,
        plan: &MicrobatchPlan,
        end: &EarlyEnd,
    ) -> Outcomes {
        let members: Vec<&RunId> = plan.parts.iter().map(|part| &self.tasks[part.task].run).collect();
        let waiting: Vec<&RunId> = self.tasks.iter().map(|task| &task.run).collect();
        self.adapters.pack(backend, runs, &members, &waiting);
        let replica = self.replicas.rank();
        let own: Vec<&PlanPart> = plan.parts.iter().filter(|part| part.counts[replica] > 0).collect();
        let mut grads: Vec<Option<GradientSum<B>>> = Vec::new();
        for part in &own {
            let task = &mut self.tasks[part.task];
            let Some(run) = runs.get_mut(&task.run) else { return Vec::new() };
            let zeros = |run: &mut TrainingRun<B>| GradientSum::new(run.begin_gradient(backend));
            grads.push(task.trains.then(|| task.grads.take().unwrap_or_else(|| zeros(run))));
        }
        let Some(leader) = own.first().and_then(|part| runs.get(&self.tasks[part.task].run)) else {
            return plan.parts.iter().map(|_| None).collect();
        };
        let take = |part: &&PlanPart| self.tasks[part.task].take_losses(replica, part.counts[replica]);
        let evaluated: Vec<_> = own.iter().map(take).collect();
        let mut groups: Vec<TrainGroup<'_, B>> = own
            .iter()
            .zip(&mut grads)
            .zip(evaluated)
            .map(|((part, grads), evaluated)| {
                let task = &self.tasks[part.task];
                TrainGroup {
                    adapter: runs.get(&task.run).and_then(TrainingRun::packed),
                    scalar_head: runs.get(&task.run).and_then(TrainingRun::scalar_head),
                    loss: task.loss.clone(),
                    data: task.next(replica, part.counts[replica]),
                    images: task.next_images(replica, part.counts[replica]),
                    evaluated,
                    interrupt: self.loss_interrupt(&task.id),
                    grads: grads.as_mut(),
                }
            })
            .collect();
        let rows = groups.iter().flat_map(|group| &group.data).map(|datum| datum.tokens.len()).sum();
        let (weights, full) = ((&**leader.weights()).into(), leader.is_full());
        let weights = TrainWeights { weights, base: &leader.base.weights };
        let bounds = PassBounds { allowance: self.allowance.of_pass(rows), ..PassBounds::of(plan, end) };
        let outcomes = train_pass_within(backend, weights, &mut groups, full, bounds);
        for (part, grads) in own.iter().zip(grads) {
            self.tasks[part.task].grads = grads;
        }
        let mut outcomes = outcomes.into_iter();
        plan.parts.iter().map(|part| if part.counts[replica] > 0 { outcomes.next() } else { None }).collect()
    }

    /// Stores the outputs of a pass, those of each replica; returns the requests that it completed.
    fn advance(
        &mut self,
        backend: &B,
        runs: &mut BTreeMap<RunId, TrainingRun<B>>,
        plan: &MicrobatchPlan,
        replicas: Vec<Outcomes>,
    ) -> Vec<Completion> {
        for (replica, outcomes) in replicas.into_iter().enumerate() {
            for (part, outcome) in plan.parts.iter().zip(outcomes) {
                let Some(outcome) = outcome else { continue };
                if let Ok(output) = &outcome {
                    let logprobs = output.datums.iter().flat_map(|output| &output.logprobs);
                    logprobs.for_each(|logprob| self.stats.digest.add(logprob.to_bits()));
                }
                self.tasks[part.task].store(replica, outcome, replica == self.replicas.rank());
            }
        }
        let parts = plan.parts.iter().map(|part| part.task);
        let finished: BTreeSet<usize> = parts.filter(|task| self.tasks[*task].is_computed()).collect();
        let mut completions: Vec<_> = finished
            .into_iter()
            .rev()
            .map(|i| {
                let task = self.tasks.remove(i);
                let (id, run) = (task.id.clone(), task.run.clone());
                match guarded("end of a training request", || finish(backend, task, runs)) {
                    Ok(result) => {
                        self.adapters.enforce_limit(backend, &run, runs);
                        Completion::new(id, result)
                    }
                    Err(fault) => {
                        runs.remove(&run);
                        Completion { lost_run: Some(run), ..Completion::new(id, Err(fault.error())) }
                    }
                }
            })
            .collect();
        completions.reverse();
        completions
    }

    /// Handles a panic in a pass. A request that was the only one in it fails, and its run is dropped, except for lack
    /// of memory: no pass changes a run. Several requests are restarted and quarantined, to run one at a time.
    fn isolate(
        &mut self,
        runs: &mut BTreeMap<RunId, TrainingRun<B>>,
        plan: &MicrobatchPlan,
        fault: Fault,
    ) -> Vec<Completion> {
        if let [part] = &plan.parts[..] {
            let task = self.tasks.remove(part.task);
            let lost_run = (fault != Fault::OutOfMemory).then_some(task.run);
            lost_run.iter().for_each(|run| drop(runs.remove(run)));
            return vec![Completion { lost_run, ..Completion::new(task.id, Err(fault.error())) }];
        }
        for part in &plan.parts {
            let task = &mut self.tasks[part.task];
            task.restart(task.progress() + part.counts.iter().sum::<usize>());
        }
        Vec::new()
    }
}

/// Refuses a loss, or examples, for which a model with this head computes nothing.
fn check_head(loss: &LossFn, data: &[PreparedDatum], head: ModelHead) -> Result<(), OpError> {
    loss.check_head(head)?;
    let of_distribution = |datum: &PreparedDatum| {
        let inputs = [("entropy_weights", &datum.entropy_weights), ("kl_weights", &datum.kl_weights)];
        inputs.into_iter().find_map(|(name, weights)| weights.as_ref().map(|_| (datum.index, name)))
    };
    if let Some((index, name)) = data.iter().find_map(of_distribution).filter(|_| head.is_scalar()) {
        return Err(OpError::user(format!(
            "data[{index}].loss_fn_inputs.{name}: a model with a scalar head has no distribution over tokens"
        )));
    }
    match data.iter().find(|datum| head.is_scalar() && datum.shape.len() > 1) {
        None => Ok(()),
        Some(PreparedDatum { index, shape, .. }) => Err(OpError::user(format!(
            "data[{index}].loss_fn_inputs.target_tokens: has shape {shape:?}; a model with a scalar head has one value per \
             position, shape (N,)"
        ))),
    }
}

#[cfg(test)]
impl<B: Backend> Trainer<B> {
    /// Injects an unchecked token.
    pub(super) fn poison(&mut self, id: &RequestId, datum: usize, token: u32) {
        for task in self.tasks.iter_mut().filter(|task| task.id == *id) {
            Arc::make_mut(&mut task.data[datum]).tokens[3] = token;
        }
    }
}

#[cfg(test)]
#[path = "adapter_cache_tests.rs"]
mod adapter_cache_tests;
#[cfg(test)]
#[path = "loss_thread_tests.rs"]
pub(in crate::engine) mod loss_thread_tests;
