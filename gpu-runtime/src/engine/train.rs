//! Training requests, cut into microbatches that several runs share.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::limits::MAX_DATUMS;
use trainyard_protocol::{
    Completion, DatumOutput, ForwardBackward, ForwardBackwardResult, OpError, OpResult, RequestId, RunId,
};

use super::run::Run;
use crate::kernels::Cpu;
use crate::loss::{LossFn, PreparedDatum, prepare};
use crate::model::{Gradients, PassMemory, TrainGroup, TrainOutput, Weights, train_pass};

/// A request on its way.
struct Job {
    id: RequestId,
    run: RunId,
    loss: LossFn,
    data: Vec<PreparedDatum>,
    /// Datums that have been computed.
    next: usize,
    outputs: Vec<TrainOutput>,
    /// `None` for forward-only requests.
    grads: Option<Gradients>,
}

impl Job {
    fn trains(&self) -> bool {
        self.grads.is_some()
    }
}

/// A microbatch.
#[derive(Default)]
struct Plan {
    /// Which jobs compute how many of their datums.
    parts: Vec<(usize, usize)>,
    /// Blocks that keep their activations.
    kept: usize,
}

/// Requests in progress. A microbatch takes datums from every request that can share a pass with the one
/// whose turn it is; a run's numbers do not depend on how its datums are cut.
pub(super) struct Trainer {
    jobs: Vec<Job>,
    microbatch_tokens: usize,
    activation_bytes: usize,
    turn: usize,
}

impl Trainer {
    pub(super) fn new(microbatch_tokens: usize, activation_bytes: usize) -> Self {
        Self { jobs: Vec::new(), microbatch_tokens: microbatch_tokens.max(1), activation_bytes, turn: 0 }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Gives up the requests of a run.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.jobs.retain(|job| job.run != *run);
    }

    /// Checks a request and queues it.
    pub(super) fn start(&mut self, id: RequestId, run: &Run, request: ForwardBackward) -> Result<(), OpError> {
        let (vocab, context) = (run.base.config.vocab_size, run.base.config.max_position_embeddings);
        if request.data.is_empty() {
            return Err(OpError::user("data: must hold at least one datum"));
        }
        if request.data.len() > MAX_DATUMS {
            return Err(OpError::user(format!("data: {} datums are more than {MAX_DATUMS}", request.data.len())));
        }
        let loss = LossFn::parse(&request.loss_fn, &request.loss_fn_config)?;
        let data = request
            .data
            .iter()
            .enumerate()
            .map(|(i, datum)| {
                if datum.tokens.len() > context {
                    return Err(OpError::user(format!(
                        "data[{i}].model_input: {} tokens exceed the model's context window of {context}",
                        datum.tokens.len()
                    )));
                }
                prepare(&loss, i, datum, vocab)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let grads = (!request.forward_only).then(|| run.zero_gradient());
        self.jobs.push(Job { id, run: request.run, loss, data, next: 0, outputs: Vec::new(), grads });
        Ok(())
    }

    /// Computes one microbatch and returns what it finished.
    pub(super) fn step(&mut self, cpu: &Cpu, runs: &mut BTreeMap<RunId, Run>) -> Vec<Completion> {
        let plan = self.plan(runs);
        let Some(leader) = plan.parts.first().and_then(|(i, _)| runs.get(&self.jobs[*i].run)) else {
            return self.fail_orphans(runs);
        };
        let (weights, full) = (Arc::clone(leader.weights()), leader.adapter().is_none());
        let outcomes = self.compute(cpu, runs, &plan, &weights, full);
        drop(weights);
        let mut finished = Vec::new();
        for ((i, count), outcome) in plan.parts.iter().zip(outcomes) {
            let job = &mut self.jobs[*i];
            match outcome {
                Ok(outputs) => {
                    job.next += count;
                    job.outputs.extend(outputs);
                    if job.next == job.data.len() {
                        finished.push((*i, Ok(())));
                    }
                }
                Err(error) => finished.push((*i, Err(error))),
            }
        }
        finished.sort_by_key(|(i, _)| *i);
        let mut completions: Vec<_> = finished
            .into_iter()
            .rev()
            .map(|(i, outcome)| {
                let job = self.jobs.remove(i);
                let id = job.id.clone();
                Completion { id, result: outcome.and_then(|()| finish(cpu, job, runs)) }
            })
            .collect();
        completions.reverse();
        completions
    }

    fn fail_orphans(&mut self, runs: &BTreeMap<RunId, Run>) -> Vec<Completion> {
        let orphans = self.jobs.extract_if(.., |job| !runs.contains_key(&job.run));
        orphans.map(|job| Completion { id: job.id, result: Err(OpError::server("the model was unloaded")) }).collect()
    }

    /// Which requests compute how many of their datums now. One datum of each in turn, until the
    /// budget is used up.
    fn plan(&mut self, runs: &BTreeMap<RunId, Run>) -> Plan {
        if self.jobs.is_empty() {
            return Plan::default();
        }
        self.turn = (self.turn + 1) % self.jobs.len();
        let leader = &self.jobs[self.turn];
        let Some(lead_run) = runs.get(&leader.run) else { return Plan::default() };
        let shares = |job: &Job| {
            let same = |run: &Run| Arc::ptr_eq(run.weights(), lead_run.weights()) && run.adapter().is_some();
            job.id == leader.id
                || (lead_run.adapter().is_some()
                    && job.trains() == leader.trains()
                    && runs.get(&job.run).is_some_and(same))
        };
        let order = (0..self.jobs.len()).map(|i| (self.turn + i) % self.jobs.len());
        let mut plan: Vec<(usize, usize)> = order.filter(|i| shares(&self.jobs[*i])).map(|i| (i, 0)).collect();
        let adapters: Vec<_> = plan.iter().filter_map(|(i, _)| runs.get(&self.jobs[*i].run)?.adapter()).collect();
        let memory = PassMemory::of(lead_run.weights(), adapters.iter().map(AsRef::as_ref));
        let most = if leader.trains() {
            memory.rows_within(self.activation_bytes).min(self.microbatch_tokens)
        } else {
            self.microbatch_tokens
        };
        let mut used = 0;
        loop {
            let before = used;
            for (i, count) in &mut plan {
                let job = &self.jobs[*i];
                let Some(datum) = job.data.get(job.next + *count) else { continue };
                if used == 0 || used + datum.tokens.len() <= most {
                    used += datum.tokens.len();
                    *count += 1;
                }
            }
            if used == before {
                break;
            }
        }
        plan.retain(|(_, count)| *count > 0);
        Plan { kept: memory.kept_within(used, self.activation_bytes), parts: plan }
    }

    fn compute(
        &mut self,
        cpu: &Cpu,
        runs: &BTreeMap<RunId, Run>,
        plan: &Plan,
        weights: &Weights,
        full: bool,
    ) -> Vec<Result<Vec<TrainOutput>, OpError>> {
        let mut grads: Vec<Option<Gradients>> = plan.parts.iter().map(|(i, _)| self.jobs[*i].grads.take()).collect();
        let mut groups: Vec<TrainGroup<'_>> = plan
            .parts
            .iter()
            .zip(&mut grads)
            .map(|((i, count), grads)| {
                let job = &self.jobs[*i];
                TrainGroup {
                    adapter: runs.get(&job.run).and_then(Run::adapter),
                    loss: job.loss,
                    data: job.data[job.next..job.next + count].iter().collect(),
                    grads: grads.as_mut(),
                }
            })
            .collect();
        let outcomes = train_pass(cpu, weights, &mut groups, full, plan.kept);
        for ((i, _), grads) in plan.parts.iter().zip(grads) {
            self.jobs[*i].grads = grads;
        }
        outcomes
    }
}

fn finish(cpu: &Cpu, job: Job, runs: &mut BTreeMap<RunId, Run>) -> Result<OpResult, OpError> {
    if let Some(grads) = job.grads {
        let run = runs.get_mut(&job.run).ok_or_else(|| OpError::server("the model was unloaded"))?;
        run.accumulate(cpu, grads)?;
    }
    let sum: f64 = job.outputs.iter().map(|o| o.value.sum).sum();
    let outputs = job
        .data
        .iter()
        .zip(job.outputs)
        .map(|(datum, output)| DatumOutput {
            shape: datum.shape.clone(),
            logprobs: output.logprobs,
            elementwise_loss: output.value.elementwise,
        })
        .collect();
    let metrics = BTreeMap::from([("loss:sum".to_owned(), sum)]);
    Ok(OpResult::ForwardBackward(ForwardBackwardResult { outputs, metrics }))
}
