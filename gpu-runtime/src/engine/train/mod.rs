//! Training requests, cut into microbatches that several runs share.

mod pack;
mod plan;

use std::collections::BTreeMap;

use trainyard_protocol::{
    Completion, DatumOutput, Flow, ForwardBackward, ForwardBackwardResult, OpError, OpResult, RequestId, RunId,
};

use super::fair::Fair;
use super::fault::{Fault, guarded};
use super::run::Run;
use crate::kernels::Cpu;
use crate::loss::{LossFn, PreparedBatch, PreparedDatum};
use crate::model::{GradientSum, TrainGroup, TrainOutput, train_pass};
use pack::Packed;
use plan::Plan;

/// By part of a plan.
type Outcomes = Vec<Result<Vec<TrainOutput>, OpError>>;

/// A request on its way. It changes its run when it is complete, and nothing before.
struct Job {
    id: RequestId,
    flow: Flow,
    run: RunId,
    loss: LossFn,
    data: Vec<PreparedDatum>,
    /// Datums that have been computed.
    next: usize,
    outputs: Vec<TrainOutput>,
    /// Whether it is not forward-only.
    trains: bool,
    /// Their gradient, from the first microbatch on.
    grads: Option<GradientSum>,
    /// It has microbatches of its own until this many datums are computed: a pass that it took part in panicked there.
    suspect_until: usize,
}

impl Job {
    fn is_suspect(&self) -> bool {
        self.next < self.suspect_until
    }

    /// Begins again from the first datum, by itself until datum `suspect_until`.
    fn restart(&mut self, suspect_until: usize) {
        (self.next, self.grads, self.suspect_until) = (0, None, suspect_until);
        self.outputs.clear();
    }
}

/// Requests in progress, in order of arrival. A microbatch takes datums from every request that can share a pass with
/// the one whose turn it is; a run's numbers do not depend on how its datums are cut.
pub(super) struct Trainer {
    jobs: Vec<Job>,
    fair: Fair,
    packed: Packed,
    microbatch_tokens: usize,
    activation_bytes: usize,
    stats: TrainStats,
}

/// What was computed.
#[derive(Clone, Copy, Default)]
pub(super) struct TrainStats {
    pub(super) passes: u64,
    pub(super) tokens: u64,
    /// Tokens that these passes could have held.
    pub(super) capacity: u64,
}

impl Trainer {
    pub(super) fn new(microbatch_tokens: usize, activation_bytes: usize) -> Self {
        let microbatch_tokens = microbatch_tokens.max(1);
        Self {
            jobs: Vec::new(),
            fair: Fair::new(microbatch_tokens),
            packed: Packed::new(),
            microbatch_tokens,
            activation_bytes,
            stats: TrainStats::default(),
        }
    }

    pub(super) fn stats(&self) -> TrainStats {
        self.stats
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Gives up the requests of a run.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.packed.forget();
        self.jobs.retain(|job| job.run != *run);
    }

    /// Checks a request and queues it.
    pub(super) fn start(
        &mut self,
        id: RequestId,
        flow: Flow,
        run: &Run,
        request: ForwardBackward,
    ) -> Result<(), OpError> {
        let config = &run.base.config;
        let (trains, run) = (!request.forward_only, request.run.clone());
        let PreparedBatch { loss, data, .. } =
            PreparedBatch::of(request, config.vocab_size, config.max_position_embeddings)?;
        let job =
            Job { id, flow, run, loss, data, next: 0, outputs: Vec::new(), trains, grads: None, suspect_until: 0 };
        self.jobs.push(job);
        Ok(())
    }

    /// Computes one microbatch and returns what it finished.
    pub(super) fn step(&mut self, cpu: &Cpu, runs: &mut BTreeMap<RunId, Run>) -> Vec<Completion> {
        let orphans = self.fail_orphans(runs);
        if !orphans.is_empty() {
            return orphans;
        }
        let plan = self.plan(runs);
        self.stats.passes += 1;
        self.stats.tokens += plan.rows as u64;
        self.stats.capacity += self.microbatch_tokens.max(plan.rows) as u64;
        match guarded("training pass", || self.compute(cpu, runs, &plan)) {
            Ok(outcomes) => self.advance(cpu, runs, &plan, outcomes),
            Err(fault) => self.isolate(runs, &plan, fault),
        }
    }

    fn fail_orphans(&mut self, runs: &BTreeMap<RunId, Run>) -> Vec<Completion> {
        let orphans = self.jobs.extract_if(.., |job| !runs.contains_key(&job.run));
        orphans.map(|job| Completion::new(job.id, Err(OpError::server("the model was unloaded")))).collect()
    }

    /// Runs the pass. A panic in it leaves the jobs that take part without their gradients.
    fn compute(&mut self, cpu: &Cpu, runs: &mut BTreeMap<RunId, Run>, plan: &Plan) -> Outcomes {
        let members: Vec<&RunId> = plan.parts.iter().map(|(i, _)| &self.jobs[*i].run).collect();
        let waiting: Vec<&RunId> = self.jobs.iter().map(|job| &job.run).collect();
        self.packed.pack(cpu, runs, &members, &waiting);
        let mut grads: Vec<Option<GradientSum>> = Vec::new();
        for (i, _) in &plan.parts {
            let job = &mut self.jobs[*i];
            let Some(run) = runs.get_mut(&job.run) else { return Vec::new() };
            let zeros = |run: &mut Run| GradientSum::new(run.zero_gradient(cpu));
            grads.push(job.trains.then(|| job.grads.take().unwrap_or_else(|| zeros(run))));
        }
        let Some(leader) = plan.parts.first().and_then(|(i, _)| runs.get(&self.jobs[*i].run)) else {
            return Vec::new();
        };
        let mut groups: Vec<TrainGroup<'_>> = plan
            .parts
            .iter()
            .zip(&mut grads)
            .map(|((i, count), grads)| {
                let job = &self.jobs[*i];
                TrainGroup {
                    adapter: runs.get(&job.run).and_then(Run::packed),
                    loss: job.loss,
                    data: job.data[job.next..job.next + count].iter().collect(),
                    grads: grads.as_mut(),
                }
            })
            .collect();
        let outcomes = train_pass(cpu, leader.weights(), &mut groups, leader.is_full(), plan.kept);
        for ((i, _), grads) in plan.parts.iter().zip(grads) {
            self.jobs[*i].grads = grads;
        }
        outcomes
    }

    /// Takes in what a pass computed; returns what is complete.
    fn advance(
        &mut self,
        cpu: &Cpu,
        runs: &mut BTreeMap<RunId, Run>,
        plan: &Plan,
        outcomes: Outcomes,
    ) -> Vec<Completion> {
        let mut finished = BTreeMap::new();
        for ((i, count), outcome) in plan.parts.iter().zip(outcomes) {
            let job = &mut self.jobs[*i];
            match outcome {
                Ok(outputs) => {
                    job.next += count;
                    job.outputs.extend(outputs);
                    if job.next == job.data.len() {
                        finished.insert(*i, Ok(()));
                    }
                }
                Err(error) => drop(finished.insert(*i, Err(error))),
            }
        }
        let mut completions: Vec<_> = finished
            .into_iter()
            .rev()
            .map(|(i, outcome)| {
                let job = self.jobs.remove(i);
                let (id, run) = (job.id.clone(), job.run.clone());
                match guarded("end of a training request", || outcome.and_then(|()| finish(cpu, job, runs))) {
                    Ok(result) => {
                        self.packed.settle(&run, runs);
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

    /// After a pass that panicked: a request that was alone in it is at fault, and its run is dropped; several begin
    /// again, one at a time.
    fn isolate(&mut self, runs: &mut BTreeMap<RunId, Run>, plan: &Plan, fault: Fault) -> Vec<Completion> {
        if let [(i, _)] = plan.parts[..] {
            let job = self.jobs.remove(i);
            runs.remove(&job.run);
            return vec![Completion { lost_run: Some(job.run), ..Completion::new(job.id, Err(fault.error())) }];
        }
        for (i, count) in &plan.parts {
            let job = &mut self.jobs[*i];
            job.restart(job.next + count);
        }
        Vec::new()
    }
}

fn finish(cpu: &Cpu, job: Job, runs: &mut BTreeMap<RunId, Run>) -> Result<OpResult, OpError> {
    if let Some(grads) = job.grads {
        let run = runs.get_mut(&job.run).ok_or_else(|| OpError::server("the model was unloaded"))?;
        let grads = grads.finish(&run.base.layout);
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

#[cfg(test)]
impl Trainer {
    /// Puts a token past the checks.
    pub(super) fn poison(&mut self, id: &RequestId, datum: usize, token: u32) {
        for job in self.jobs.iter_mut().filter(|job| job.id == *id) {
            job.data[datum].tokens[3] = token;
        }
    }
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod pack_tests;
