//! Continuous batching: every step runs one pass that extends prompts and sequences of many requests.
//!
//! Full blocks of keys and values are in the [`prefix`] cache as soon as they are computed; outside of it a request holds
//! only the last, partly filled blocks of its sequences. Cache and requests share one budget.

mod admit;
mod check;
mod checkpoint_cache;
mod images;
mod logits;
mod part;
mod pass;
mod plan;
mod prefix;
mod prepared;
mod progress;
mod prompt;
mod shares;
mod spread;
mod stream;
mod task;
mod waiting;
mod weights;
mod widths;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use trainyard_protocol::{
    Completion, EngineStats, OpError, OpResult, RequestId, SampleOperation, SampleProgress, SamplerSource, SessionId,
    TenantShare,
};

use super::fair_share::FairShare;
use super::lockstep::Digest;
use crate::backend::{BALANCED_ROWS, Backend};
use crate::collective::Ranks;
use crate::fault::{Fault, guarded};
use crate::model::Weights;
pub(super) use checkpoint_cache::CheckpointCache;
use images::{ImageKeys, PromptImages};
pub(crate) use logits::LOGIT_ROWS;
use part::PassPart;
use prefix::PrefixCache;
pub(super) use prepared::PreparedSample;
pub use shares::MAX_SEQUENCES;
use spread::{Counts, Report, Spread};
use task::SampleTask;
use waiting::WaitingSamples;
pub(super) use weights::SamplerWeights;

/// Prompt tokens that a fair-share round of admissions grants.
const ADMISSION_ROUND: usize = 256;
/// Prompt rows of a pass while no sequence decodes.
const PREFILL_ROWS: usize = 256;
/// Largest deficit, in tokens, that sampled tokens leave for the prompts of their tenant.
const MAX_SAMPLING_DEFICIT: usize = 4096;
/// Active and waiting sampling requests.
pub(super) struct Sampler<B: Backend> {
    waiting: WaitingSamples<B>,
    /// Active requests in order of arrival.
    active: Vec<SampleTask<B>>,
    arrivals: u64,
    /// Requests that were admitted for the first time and not yet reported.
    admitted: Vec<RequestId>,
    cache: PrefixCache<B>,
    image_keys: ImageKeys,
    kv_bytes: usize,
    /// Weights of active requests, least recently used first.
    weights_rotation: VecDeque<Arc<Weights<B>>>,
    /// Schedules admissions; charged with prompt tokens and sampled tokens.
    admissions: FairShare,
    /// Schedules the prompt rows of a pass; charged with prompt tokens and sampled tokens.
    prefills: FairShare,
    /// The session whose prompt got rows last, by tenant.
    prefill_turns: BTreeMap<Arc<str>, SessionId>,
    /// The session whose sequence was the last in a limited pass, by tenant.
    decode_turns: BTreeMap<Arc<str>, SessionId>,
    /// Turns that sequences had in limited passes.
    last_turn: u64,
    /// Schedules passes among tenants that use different weights.
    passes: FairShare,
    /// Rows that a pass computes in about the time in which it reads the weights.
    balanced_rows: usize,
    /// Passes to come in which each share's part is limited.
    limited_passes: usize,
    /// Rows beyond their limits that shares had in limited passes.
    row_debts: BTreeMap<Arc<str>, usize>,
    /// Whether the last pass was for a quarantined request.
    last_was_quarantined: bool,
    counts: SampleCounts,
    /// Assignment of samples to replicas of the model, if there are several.
    spread: Option<Spread<B>>,
}

/// Counters since the start.
#[derive(Clone, Copy, Default)]
struct SampleCounts {
    passes: u64,
    prompt_tokens: u64,
    sampled_tokens: u64,
    /// Digest of sampled tokens and their log-probabilities.
    digest: Digest,
}

impl<B: Backend> Sampler<B> {
    pub(super) fn new(kv_bytes: usize) -> Self {
        Self {
            waiting: WaitingSamples::new(),
            active: Vec::new(),
            arrivals: 0,
            admitted: Vec::new(),
            cache: PrefixCache::default(),
            image_keys: ImageKeys::default(),
            kv_bytes,
            weights_rotation: VecDeque::new(),
            admissions: FairShare::new(ADMISSION_ROUND).with_max_deficit(MAX_SAMPLING_DEFICIT),
            prefills: FairShare::new(PREFILL_ROWS).with_max_deficit(MAX_SAMPLING_DEFICIT),
            prefill_turns: BTreeMap::new(),
            decode_turns: BTreeMap::new(),
            last_turn: 0,
            passes: FairShare::new(1),
            balanced_rows: BALANCED_ROWS,
            limited_passes: 0,
            row_debts: BTreeMap::new(),
            last_was_quarantined: false,
            counts: SampleCounts::default(),
            spread: None,
        }
    }

    /// The sampler for a device that computes so many rows in about the time in which it reads the weights.
    pub(super) fn with_balanced_rows(self, balanced_rows: usize) -> Self {
        Self { balanced_rows, ..self }
    }

    /// The sampler of one of these replicas.
    pub(super) fn on(self, replicas: &Ranks) -> Self {
        Self { spread: (!replicas.is_single()).then(|| Spread::new(replicas.clone())), ..self }
    }

    /// Whether no replica has a sample.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_empty() && self.spread.as_ref().is_none_or(Spread::is_empty)
    }

    /// Queues a request on one of the replicas; fails if it is not valid.
    pub(super) fn start(
        &mut self,
        id: RequestId,
        share: TenantShare,
        weights: SamplerWeights<B>,
        sample: PreparedSample<B>,
    ) -> Result<(), OpError> {
        let PreparedSample { operation, grammar, images, embeddings } = sample;
        let SampleOperation { session, source, sample, .. } = operation;
        let root = self.cache.root(&weights);
        let images = PromptImages::new(&sample.prompt, &images, &embeddings, &mut self.image_keys);
        let mut task = SampleTask::new(id, share, session, self.arrivals, weights, grammar, root, sample, images)?;
        // Others may use the same base model or published checkpoint, and must not see in a hit what was asked of it.
        task.reports_hits = matches!(source, SamplerSource::Snapshot { .. });
        self.arrivals += 1;
        if self.spread.as_mut().is_none_or(|spread| spread.place(&task)) {
            self.waiting.push_back(task);
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.active.retain(|task| !ids.contains(&task.id));
        self.waiting.cancel(ids);
        self.spread.iter_mut().for_each(|spread| spread.cancel(ids));
        self.evict_unused();
    }

    /// The requests that were admitted for the first time since the last call.
    pub(super) fn take_admitted(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.admitted)
    }

    /// Tokens of an active request beyond the known ones, a count per sequence.
    pub(super) fn sampled_since(&self, id: &RequestId, known: &[usize]) -> Vec<SampleProgress> {
        if let Some(task) = self.active.iter().find(|task| task.id == *id) {
            return task.sampled_since(known);
        }
        self.spread.as_ref().map_or_else(Vec::new, |spread| spread.sampled_since(id, known))
    }

    /// Runs one pass on each replica and returns the requests that these finished.
    pub(super) fn step(&mut self, backend: &B) -> Vec<Completion> {
        let finished = self.own_step(backend);
        let Some(mut spread) = self.spread.take() else { return finished };
        let merged = spread.exchange(self.report(&spread, finished));
        self.admitted.extend(merged.admitted);
        self.spread = Some(spread);
        self.evict_unused();
        merged.finished
    }

    /// The report of this replica's pass to the other replicas.
    fn report(&mut self, spread: &Spread<B>, finished: Vec<Completion>) -> Report {
        let progress = |task: &SampleTask<B>| {
            let reported = spread.reported(&task.id, task.all_sequences());
            Some((task.id.clone(), task.sampled_since(&reported))).filter(|(_, progress)| !progress.is_empty())
        };
        let result = |completion: Completion| match completion.result {
            Ok(OpResult::Sample(result)) => (completion.id, Ok(result)),
            Ok(_) => (completion.id, Err(OpError::server("a sample ended with another operation's result"))),
            Err(error) => (completion.id, Err(error)),
        };
        Report {
            admitted: std::mem::take(&mut self.admitted),
            progress: self.active.iter().filter_map(progress).collect(),
            finished: finished.into_iter().map(result).collect(),
            counts: Counts::of(&self.own_stats()),
            digest: self.counts.digest.extent() as u32,
        }
    }

    /// Runs one pass and returns the requests that it finished.
    fn own_step(&mut self, backend: &B) -> Vec<Completion> {
        let parts = self.prepare();
        // Decoding computes one position of each sequence, pass after pass.
        let repeats = parts.iter().all(|part| part.positions.len() == 1);
        let mut run =
            || if repeats { backend.repeated(|| self.run(backend, &parts)) } else { self.run(backend, &parts) };
        let mut completions = match guarded("sampling pass", &mut run) {
            Ok(()) => Vec::new(),
            Err(fault) => self.isolate(&parts, fault),
        };
        completions.extend(self.finish());
        completions
    }

    /// Handles a panic in a pass: if only one request took part, it fails; several are restarted and quarantined until
    /// they are past the point of the panic. The cache is cleared, since the pass may have left it inconsistent.
    fn isolate(&mut self, parts: &[PassPart], fault: Fault) -> Vec<Completion> {
        self.cache = PrefixCache::default();
        let mut participants: Vec<usize> = parts.iter().map(|part| part.task).collect();
        participants.sort_unstable();
        participants.dedup();
        let reached: Vec<usize> = self.active.iter().map(SampleTask::progress).collect();
        for task in self.active.iter_mut().chain(self.waiting.iter_mut()) {
            task.change_root(self.cache.root(&task.weights));
        }
        if let [only] = participants[..] {
            let task = self.active.remove(only);
            return vec![Completion::new(task.id, Err(fault.error()))];
        }
        for i in participants.into_iter().rev() {
            let rows: usize = parts.iter().filter(|part| part.task == i).map(|part| part.positions.len()).sum();
            let restarted = self.active.remove(i).restarted(reached[i] + rows + 1);
            self.active.insert(i, restarted);
        }
        Vec::new()
    }

    /// Admits requests and plans the next pass within the KV budget.
    fn prepare(&mut self) -> Vec<PassPart> {
        self.admit();
        let mut parts = self.plan();
        self.limited_passes = self.limited_passes.saturating_sub(1);
        self.enforce_kv_budget(&mut parts);
        parts
    }

    fn finish(&mut self) -> Vec<Completion> {
        let finished: Vec<_> = self.active.extract_if(.., |task| task.is_finished()).collect();
        let complete = |task: SampleTask<B>| Completion::new(task.id.clone(), task.into_result().map(OpResult::Sample));
        let completions = finished.into_iter().map(complete).collect();
        self.evict_unused();
        completions
    }

    /// Sets the KV budget; blocks beyond it that no sequence holds are evicted.
    pub(super) fn set_kv_limit(&mut self, bytes: usize) {
        if self.kv_bytes != bytes {
            self.kv_bytes = bytes;
            self.evict_unused();
        }
    }

    /// Evicts cache entries of dropped weights and those beyond the KV budget. Call it when weights may have been dropped.
    pub(super) fn evict_unused(&mut self) {
        let active = &self.active;
        self.weights_rotation.retain(|weights| active.iter().any(|task| Arc::ptr_eq(&task.weights.weights, weights)));
        self.cache.remove_stale_versions();
        self.cache.evict(self.kv_bytes.saturating_sub(self.own_bytes()));
    }

    /// The sampler's part of the engine's statistics, over all replicas but for the limit; the other fields are zero.
    pub(super) fn stats(&self) -> EngineStats {
        let own = self.own_stats();
        self.spread.as_ref().map_or(own, |spread| spread.add_others(own))
    }

    fn own_stats(&self) -> EngineStats {
        EngineStats {
            sampling_passes: self.counts.passes,
            prompt_tokens: self.counts.prompt_tokens,
            sampled_tokens: self.counts.sampled_tokens,
            active_samples: self.active.len() as u64,
            kv_bytes: (self.cache.bytes() + self.own_bytes()) as u64,
            kv_limit: self.kv_bytes as u64,
            ..EngineStats::default()
        }
    }

    /// Digest of all tokens that were sampled.
    pub(super) fn digest(&self) -> Digest {
        self.spread.as_ref().map_or(self.counts.digest, Spread::digest)
    }

    /// Bytes that active requests hold outside the cache.
    fn own_bytes(&self) -> usize {
        self.active.iter().map(|task| task.own_blocks() * task.block_bytes()).sum()
    }
}

#[cfg(test)]
impl<B: Backend> Sampler<B> {
    /// Injects an unchecked token as the last one of a request.
    pub(super) fn poison(&mut self, id: &RequestId, token: u32) {
        let tasks = self.waiting.iter_mut().chain(&mut self.active);
        tasks.filter(|task| task.id == *id).for_each(|task| task.poison(token));
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
