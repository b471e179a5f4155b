//! Verification of samples: a training pass computes a share of them again, and each log-probability must have the same
//! bits.
//!
//! A difference means that the sampler and the trainer no longer compute the same function: a kernel is wrong, or memory is
//! damaged. Checks run when nothing else does, and at the latest after [`PATIENCE`] turns of training. Those that would wait
//! beyond [`MAX_WAITING`] are skipped and counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use trainyard_protocol::{Completion, OpResult, PreparedDatum, PreparedImage, RequestId, SampledSequence};

use super::sampler::{PreparedSample, SamplerWeights};
use crate::backend::Backend;
use crate::fault::guarded;
use crate::interrupt::Interrupt;
use crate::loss::LossFn;
use crate::model::{EarlyEnd, PassBounds, PassMemory, Saved, TrainGroup, train_pass_within};
use crate::sampling::logprob_scale;
use crate::vision::{Embeddings, ImageEmbedding};

/// Unit of the share of samples that are verified.
const MILLION: u32 = 1_000_000;
/// Checks that wait; further ones are skipped.
const MAX_WAITING: usize = 4;
/// Turns of training and images between two checks, while these have work.
const PATIENCE: usize = 16;

/// A sample that will be verified, as it began.
pub(super) struct Watched<B: Backend> {
    weights: SamplerWeights<B>,
    prompt: Vec<u32>,
    images: Vec<PreparedImage>,
    embeddings: Embeddings<B>,
}

/// A sequence to verify.
struct Check<B: Backend> {
    id: RequestId,
    sample: Watched<B>,
    sequence: SampledSequence,
}

/// A position at which the trainer computes another log-probability than the sampler.
#[derive(Debug, PartialEq)]
struct Difference {
    /// Index of the token among the sampled ones.
    token: usize,
    sampled: f32,
    computed: f32,
}

/// Numbers of samples since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchStats {
    /// Samples whose sequence was computed again.
    pub(super) verified: u64,
    /// Those of them that had another log-probability.
    pub(super) differing: u64,
    /// Chosen samples that were not computed again: too many waited, one did not fit the memory of a pass, or the pass failed.
    pub(super) skipped: u64,
}

/// Samples that are verified or will be.
pub(super) struct SampleWatch<B: Backend> {
    /// Samples of a million that are verified.
    share: u32,
    /// Bytes that a pass of a check may take.
    pass_bytes: usize,
    open: BTreeMap<RequestId, Watched<B>>,
    checks: VecDeque<Check<B>>,
    /// Turns that others had since the last check.
    turns: usize,
    stats: WatchStats,
}

impl<B: Backend> SampleWatch<B> {
    /// Verifies `share` of a million samples, in passes of at most `pass_bytes`.
    pub(super) fn new(share: u32, pass_bytes: usize) -> Self {
        let (open, checks) = (BTreeMap::new(), VecDeque::new());
        Self { share, pass_bytes, open, checks, turns: 0, stats: WatchStats::default() }
    }

    pub(super) fn stats(&self) -> WatchStats {
        self.stats
    }

    /// Whether no check waits.
    pub(super) fn is_idle(&self) -> bool {
        self.checks.is_empty()
    }

    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.open.retain(|id, _| !ids.contains(id));
    }

    /// What verifying a sample needs, if it is to be verified. Other temperatures than 0 and 1 are not: their log-probabilities
    /// are of scaled logits, which no training pass computes.
    pub(super) fn chosen(
        &self,
        id: &RequestId,
        weights: &SamplerWeights<B>,
        sample: &PreparedSample<B>,
    ) -> Option<Watched<B>> {
        let request = &sample.operation.sample;
        if drawn(id) % MILLION >= self.share || logprob_scale(request.params.temperature).to_bits() != 1.0_f32.to_bits()
        {
            return None;
        }
        // Invalid prompts are refused when the sample starts.
        let prompt = request.prompt.iter().map(|token| u32::try_from(*token)).collect::<Result<_, _>>().ok()?;
        let (images, embeddings) = (sample.images.clone(), sample.embeddings.clone());
        Some(Watched { weights: weights.clone(), prompt, images, embeddings })
    }

    /// Takes note of a sample that has begun.
    pub(super) fn begin(&mut self, id: RequestId, sample: Option<Watched<B>>) {
        self.open.extend(sample.map(|sample| (id, sample)));
    }

    /// Queues the checks of samples that have finished.
    pub(super) fn note(&mut self, finished: &[Completion]) {
        for Completion { id, result, .. } in finished {
            let Some(sample) = self.open.remove(id) else { continue };
            let Ok(OpResult::Sample(result)) = result else { continue };
            // Any of the sequences, the same one on all ranks.
            let chosen = (drawn(id) / MILLION) as usize % result.sequences.len().max(1);
            let Some(sequence) = result.sequences.get(chosen) else { continue };
            let check = Check { id: id.clone(), sample, sequence: sequence.clone() };
            if self.checks.len() < MAX_WAITING && check.bytes() <= self.pass_bytes {
                self.checks.push_back(check);
            } else {
                self.stats.skipped += 1;
            }
        }
    }

    /// Whether a check has the next turn of training, where `others` tells whether anything else waits for it.
    pub(super) fn takes_turn(&mut self, others: bool) -> bool {
        if self.checks.is_empty() {
            return false;
        }
        self.turns += 1;
        let is_due = !others || self.turns > PATIENCE;
        if is_due {
            self.turns = 0;
        }
        is_due
    }

    /// Verifies the sample that has waited longest.
    pub(super) fn step(&mut self, backend: &B) {
        let Some(check) = self.checks.pop_front() else { return };
        let Ok(Some(computed)) = guarded("verification of a sample", || check.compute(backend)) else {
            self.stats.skipped += 1;
            return;
        };
        self.stats.verified += 1;
        if let Some(Difference { token, sampled, computed }) = difference(&check.sequence.logprobs, &computed) {
            self.stats.differing += 1;
            tracing::error!(
                request = %check.id, model = check.sample.weights.base.name, token, sampled, computed,
                "sampler and trainer compute different log-probabilities: stop this worker and run `trainyard doctor`"
            );
        }
    }
}

impl<B: Backend> Check<B> {
    fn rows(&self) -> usize {
        self.sample.prompt.len() + self.sequence.tokens.len() - 1
    }

    /// Bytes of its pass.
    fn bytes(&self) -> usize {
        PassMemory::of(&self.sample.weights.base.model, std::iter::empty()).bytes(self.rows(), Saved::default())
    }

    /// Log-probabilities of the sampled tokens by a training pass without a gradient; `None` if the pass failed.
    fn compute(&self, backend: &B) -> Option<Vec<f32>> {
        let Watched { weights, prompt, images, embeddings } = &self.sample;
        let all = [&prompt[..], &self.sequence.tokens].concat();
        let datum = PreparedDatum {
            index: 0,
            tokens: all[..all.len() - 1].to_vec(),
            targets: all[1..].to_vec(),
            shape: vec![all.len() - 1],
            k: 1,
            weights: None,
            entropy_weights: None,
            kl_weights: None,
            policy: None,
            values: None,
            custom: Vec::new(),
            images: images.clone(),
        };
        let own: Vec<Arc<ImageEmbedding<B>>> =
            images.iter().filter_map(|image| embeddings.get(&image.digest).cloned()).collect();
        let group = TrainGroup {
            adapter: weights.adapter.clone(),
            scalar_head: None,
            loss: LossFn::CrossEntropy,
            data: vec![&datum],
            images: if images.is_empty() { Vec::new() } else { vec![own] },
            evaluated: Vec::new(),
            interrupt: Interrupt::default(),
            grads: None,
        };
        // Nobody waits for it, and all ranks compute it to its end.
        let bounds = PassBounds { saved: Saved::default(), allowance: usize::MAX, early_end: &EarlyEnd::default() };
        let output = train_pass_within(backend, (&*weights.weights).into(), &mut [group], false, bounds).pop()?.ok()?;
        Some(output.datums.first()?.logprobs.get(prompt.len() - 1..)?.to_vec())
    }
}

/// A number that all ranks draw for a request.
fn drawn(id: &RequestId) -> u32 {
    crc32fast::hash(id.as_str().as_bytes())
}

/// The first token with other bits, or that only one side has.
fn difference(sampled: &[f32], computed: &[f32]) -> Option<Difference> {
    let value = |of: &[f32], token: usize| of.get(token).copied().unwrap_or(f32::NAN);
    (0..sampled.len().max(computed.len()))
        .map(|token| Difference { token, sampled: value(sampled, token), computed: value(computed, token) })
        .find(|pair| pair.sampled.to_bits() != pair.computed.to_bits())
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod watch_tests;
