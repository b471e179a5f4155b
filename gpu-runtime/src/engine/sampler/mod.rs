//! Continuous batching: every step runs one pass that extends prompts and sequences of many requests.
//!
//! Keys and values of full blocks are in the [`prefix`] cache from the moment that they are computed; what a request
//! holds besides are the last, partly filled blocks of its sequences. Cache and requests share one budget.

mod check;
mod draw;
mod job;
mod pass;
mod prefix;
mod prompt;
mod stream;

use std::collections::VecDeque;
use std::sync::Arc;

use trainyard_protocol::{Completion, OpError, OpResult, RequestId, Sample};

use super::base::Base;
use crate::kernels::Cpu;
use crate::model::{Adapter, Weights};
use job::SampleJob;
use pass::Part;
use prefix::PrefixCache;
use stream::blocks;

/// Sequences that decode together at most.
const MAX_SEQUENCES: usize = 256;
/// Log-probability of an absent candidate, with token 0.
const ABSENT: f32 = -99_999.0;

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
}

/// Samples in progress and waiting.
pub(super) struct Sampler {
    waiting: VecDeque<SampleJob>,
    /// In order of arrival.
    active: Vec<SampleJob>,
    cache: PrefixCache,
    kv_bytes: usize,
    /// Weights of active requests, in the order of their turns.
    turns: VecDeque<Arc<Weights>>,
}

impl Sampler {
    pub(super) fn new(kv_bytes: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            active: Vec::new(),
            cache: PrefixCache::default(),
            kv_bytes,
            turns: VecDeque::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty()
    }

    /// Checks a request and queues it.
    pub(super) fn start(&mut self, id: RequestId, weights: SamplerWeights, request: Sample) -> Result<(), OpError> {
        let root = self.cache.root(&weights);
        self.waiting.push_back(SampleJob::new(id, weights, root, request)?);
        Ok(())
    }

    /// Gives up a request.
    pub(super) fn cancel(&mut self, id: &RequestId) -> bool {
        let before = self.waiting.len() + self.active.len();
        self.waiting.retain(|job| job.id != *id);
        self.active.retain(|job| job.id != *id);
        self.settle();
        before != self.waiting.len() + self.active.len()
    }

    /// Runs one pass and returns the requests that it finished.
    pub(super) fn step(&mut self, cpu: &Cpu) -> Vec<Completion> {
        let parts = self.prepare();
        self.run(cpu, &parts);
        self.finish()
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
        let complete =
            |job: SampleJob| Completion { id: job.id.clone(), result: Ok(OpResult::Sample(job.into_result())) };
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

    /// Bytes that active requests hold outside the cache.
    fn own_bytes(&self) -> usize {
        self.active.iter().map(|job| job.own_blocks() * job.block_bytes()).sum()
    }

    /// Admits what fits, in order of arrival; a request that alone is too large runs alone. Blocks that are only
    /// cached make room.
    fn admit(&mut self) {
        while let Some(next) = self.waiting.front_mut() {
            let sequences: usize = self.active.iter().map(SampleJob::sequences).sum();
            if !self.active.is_empty() && sequences + next.sequences() > MAX_SEQUENCES {
                return;
            }
            for target in next.targets() {
                next.reuse(target, &mut self.cache);
            }
            let ahead = |job: &SampleJob| job.blocks_ahead() * job.block_bytes();
            let ahead = ahead(next) + self.active.iter().map(ahead).sum::<usize>();
            self.cache.evict(self.kv_bytes.saturating_sub(ahead));
            if !self.active.is_empty() && self.cache.bytes() + ahead > self.kv_bytes {
                next.release();
                return;
            }
            if !self.turns.iter().any(|weights| Arc::ptr_eq(weights, &next.weights.weights)) {
                self.turns.push_back(Arc::clone(&next.weights.weights));
            }
            self.active.extend(self.waiting.pop_front());
        }
    }

    /// Makes room for the blocks that a pass adds. Admission does not set aside the whole length that sequences may
    /// reach, so that room can run out: then the youngest request lets go of its blocks and waits again.
    fn make_room(&mut self, parts: &mut Vec<Part>) {
        loop {
            let new: usize = parts
                .iter()
                .map(|part| {
                    let job = &self.active[part.job];
                    let held = job.stream(part.target).1.kv.blocks().len();
                    blocks(part.positions.end).saturating_sub(held) * job.block_bytes()
                })
                .sum();
            let needed = self.own_bytes() + new;
            self.cache.evict(self.kv_bytes.saturating_sub(needed));
            if self.active.len() < 2 || self.cache.bytes() + needed <= self.kv_bytes {
                return;
            }
            if let Some(mut youngest) = self.active.pop() {
                youngest.release();
                self.waiting.push_front(youngest);
            }
            parts.retain(|part| part.job < self.active.len());
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
