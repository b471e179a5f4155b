//! Continuous batching: every step runs one pass that extends prompts and sequences of many requests.
//!
//! Keys and values of full blocks are in the [`prefix`] cache from the moment that they are computed; what a request
//! holds besides are the last, partly filled blocks of its sequences. Cache and requests share one budget.

mod admit;
mod check;
mod draw;
mod job;
mod pass;
mod plan;
mod prefix;
mod prompt;
mod recent;
mod stream;

use std::collections::VecDeque;
use std::sync::Arc;

use trainyard_protocol::{Completion, EngineStats, Flow, OpError, OpResult, RequestId, Sample};

use super::base::Base;
use super::fair;
use super::fair::Fair;
use super::fault::{Fault, guarded};
use super::queues::Queues;
use crate::kernels::Cpu;
use crate::kernels::buffer::Buffer;
use crate::model::{Adapter, Weights};
use job::SampleJob;
use pass::Part;
use prefix::PrefixCache;
pub(super) use recent::Recent;

/// Prompt tokens that a round of admissions hands out.
const ADMISSION_ROUND: usize = 256;
/// Drawn tokens of a flow that are held against its prompts.
const REMEMBERED: usize = 4096;
/// Rows whose logits are held together: each has one for every token of the vocabulary.
const LOGIT_ROWS: usize = 64;
/// Log-probability of an absent candidate, with token 0.
const ABSENT: f32 = -99_999.0;

/// Room for the logits of [`LOGIT_ROWS`] rows: of one length whatever is drawn, so that it is used again.
fn logit_buffer(cpu: &Cpu, vocab: usize) -> Buffer<f32> {
    cpu.buffer(LOGIT_ROWS * vocab)
}

/// The weights that a sample uses, frozen: training replaces a run's, it never changes them.
#[derive(Clone)]
pub(super) struct SamplerWeights {
    pub(super) base: Arc<Base>,
    pub(super) weights: Arc<Weights>,
    pub(super) adapter: Option<Arc<Adapter>>,
}

impl SamplerWeights {
    pub(super) fn of_base(base: Arc<Base>) -> Self {
        Self { weights: Arc::clone(&base.weights), base, adapter: None }
    }

    /// Bytes that are not the base's.
    pub(super) fn own_bytes(&self) -> usize {
        let weights = if Arc::ptr_eq(&self.weights, &self.base.weights) { 0 } else { self.weights.bytes() };
        weights + self.adapter.as_ref().map_or(0, |adapter| adapter.bytes())
    }
}

/// Samples in progress and waiting.
pub(super) struct Sampler {
    waiting: Queues<SampleJob>,
    /// In order of arrival.
    active: Vec<SampleJob>,
    arrivals: u64,
    cache: PrefixCache,
    kv_bytes: usize,
    /// Weights of active requests, in the order of their turns.
    turns: VecDeque<Arc<Weights>>,
    /// Whose requests are admitted: prompts count there, and every token that is drawn.
    admissions: Fair,
    /// Whose prompts get the rows that a pass has for them; tokens that are drawn count there as well.
    prefills: Fair,
    /// Whose weights the next pass uses, where flows use different ones.
    passes: Fair,
    /// Whether the last pass was for a request that is suspected of a panic.
    suspected: bool,
    /// What it has done.
    counts: SampleCounts,
}

/// What was computed.
#[derive(Clone, Copy, Default)]
struct SampleCounts {
    passes: u64,
    /// Tokens of prompts.
    prompted: u64,
    /// Tokens that were drawn.
    drawn: u64,
}

impl Sampler {
    pub(super) fn new(kv_bytes: usize) -> Self {
        Self {
            waiting: Queues::default(),
            active: Vec::new(),
            arrivals: 0,
            cache: PrefixCache::default(),
            kv_bytes,
            turns: VecDeque::new(),
            admissions: Fair::new(ADMISSION_ROUND).remembering(REMEMBERED),
            prefills: Fair::new(plan::PREFILL_ROWS).remembering(REMEMBERED),
            passes: Fair::new(1),
            suspected: false,
            counts: SampleCounts::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty()
    }

    /// Checks a request and queues it.
    pub(super) fn start(
        &mut self,
        id: RequestId,
        flow: Flow,
        weights: SamplerWeights,
        request: Sample,
    ) -> Result<(), OpError> {
        let root = self.cache.root(&weights);
        let job = SampleJob::new(id, flow.clone(), self.arrivals, weights, root, request)?;
        self.arrivals += 1;
        self.waiting.push_back(&flow, job);
        Ok(())
    }

    /// Gives up a request.
    pub(super) fn cancel(&mut self, id: &RequestId) -> bool {
        let mut found = false;
        let mut keep = |job: &SampleJob| {
            found |= job.id == *id;
            job.id != *id
        };
        self.active.retain(&mut keep);
        self.waiting.retain(&mut keep);
        self.settle();
        found
    }

    /// Runs one pass and returns the requests that it finished.
    pub(super) fn step(&mut self, cpu: &Cpu) -> Vec<Completion> {
        let parts = self.prepare();
        let mut completions = match guarded("sampling pass", || self.run(cpu, &parts)) {
            Ok(()) => Vec::new(),
            Err(fault) => self.isolate(&parts, fault),
        };
        completions.extend(self.finish());
        completions
    }

    /// After a pass that panicked: a request that was alone in it is at fault; several begin again, one at a time, until
    /// they are where it happened. Nothing is kept of what it may have touched.
    fn isolate(&mut self, parts: &[Part], fault: Fault) -> Vec<Completion> {
        self.cache = PrefixCache::default();
        let mut took_part: Vec<usize> = parts.iter().map(|part| part.job).collect();
        took_part.sort_unstable();
        took_part.dedup();
        let reached: Vec<usize> = self.active.iter().map(SampleJob::progress).collect();
        for job in self.active.iter_mut().chain(self.waiting.iter_mut()) {
            job.move_to(self.cache.root(&job.weights));
        }
        if let [only] = took_part[..] {
            let job = self.active.remove(only);
            return vec![Completion::new(job.id, Err(fault.error()))];
        }
        for i in took_part.into_iter().rev() {
            let rows: usize = parts.iter().filter(|part| part.job == i).map(|part| part.positions.len()).sum();
            let again = self.active.remove(i).restarted(reached[i] + rows + 1);
            self.active.insert(i, again);
        }
        Vec::new()
    }

    /// What the next pass computes, with room for it.
    fn prepare(&mut self) -> Vec<Part> {
        self.admit();
        let mut parts = self.plan();
        self.make_room(&mut parts);
        parts
    }

    fn finish(&mut self) -> Vec<Completion> {
        let finished: Vec<_> = self.active.extract_if(.., |job| job.is_finished()).collect();
        let complete = |job: SampleJob| Completion::new(job.id.clone(), Ok(OpResult::Sample(job.into_result())));
        let completions = finished.into_iter().map(complete).collect();
        self.settle();
        completions
    }

    /// Forgets what nobody can ask for any more: call when weights may have gone.
    pub(super) fn settle(&mut self) {
        let active = &self.active;
        self.turns.retain(|weights| active.iter().any(|job| Arc::ptr_eq(&job.weights.weights, weights)));
        self.cache.forget_dead();
        self.cache.evict(self.kv_bytes.saturating_sub(self.own_bytes()));
    }

    /// What it has done and holds, beside what others have.
    pub(super) fn stats(&self) -> EngineStats {
        EngineStats {
            sampling_passes: self.counts.passes,
            prompt_tokens: self.counts.prompted,
            sampled_tokens: self.counts.drawn,
            active_samples: self.active.len() as u64,
            kv_bytes: (self.cache.bytes() + self.own_bytes()) as u64,
            kv_limit: self.kv_bytes as u64,
            ..EngineStats::default()
        }
    }

    /// Bytes that active requests hold outside the cache.
    fn own_bytes(&self) -> usize {
        self.active.iter().map(|job| job.own_blocks() * job.block_bytes()).sum()
    }
}

#[cfg(test)]
impl Sampler {
    /// Puts a token past the checks: the last one of what a request has.
    pub(super) fn poison(&mut self, id: &RequestId, token: u32) {
        let jobs = self.waiting.iter_mut().chain(&mut self.active);
        jobs.filter(|job| job.id == *id).for_each(|job| job.poison(token));
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
