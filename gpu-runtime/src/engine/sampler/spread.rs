//! Samples spread over replicas of the model.
//!
//! Each request is computed by one replica, the only one with its keys and values: the one with the least work at its
//! arrival. All replicas hold the same weights, so results do not depend on the choice. After each pass the replicas
//! exchange what they have sampled and finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{Completion, EngineStats, OpError, OpResult, RequestId, SampleProgress, SampleResult};

use super::progress::SequenceProgress;
use super::task::SampleTask;
use super::weights::SamplerWeights;
use crate::backend::Backend;
use crate::collective::Ranks;
use crate::engine::lockstep::Digest;
use crate::vision::ImageEmbedding;

/// Assignment of all samples to replicas.
pub(super) struct Spread<B: Backend> {
    replicas: Ranks,
    samples: BTreeMap<RequestId, Placed<B>>,
    /// Counts of the other replicas.
    others: Counts,
    /// Digest of all replicas' samples.
    digest: Digest,
}

/// An unfinished sample and the replica that computes it.
struct Placed<B: Backend> {
    replica: usize,
    /// Name of its tenant's share.
    share: Arc<str>,
    /// Tokens that it may take.
    work: u64,
    /// Held as long as the replica that computes it holds them, so that all replicas free weights at once.
    _weights: SamplerWeights<B>,
    /// Embeddings of its images, held for the same reason: which of them the cache evicts is the same on all replicas.
    _embeddings: Vec<Arc<ImageEmbedding<B>>>,
    /// Progress by sequence, as other replicas know it.
    sequences: BTreeMap<usize, SequenceProgress>,
}

/// Report of a replica to the others after a pass.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) admitted: Vec<RequestId>,
    /// New tokens of samples that go on.
    pub(super) progress: Vec<(RequestId, Vec<SampleProgress>)>,
    pub(super) finished: Vec<(RequestId, Result<SampleResult, OpError>)>,
    pub(super) counts: Counts,
    /// Digest of its samples.
    pub(super) digest: u32,
}

/// A replica's part of the engine's statistics, see [`EngineStats`].
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    passes: u64,
    prompt_tokens: u64,
    sampled_tokens: u64,
    active: u64,
    kv_bytes: u64,
}

impl Counts {
    pub(super) fn of(stats: &EngineStats) -> Self {
        Self {
            passes: stats.sampling_passes,
            prompt_tokens: stats.prompt_tokens,
            sampled_tokens: stats.sampled_tokens,
            active: stats.active_samples,
            kv_bytes: stats.kv_bytes,
        }
    }

    fn add(&mut self, other: Self) {
        self.passes += other.passes;
        self.prompt_tokens += other.prompt_tokens;
        self.sampled_tokens += other.sampled_tokens;
        self.active += other.active;
        self.kv_bytes += other.kv_bytes;
    }
}

/// Merged reports of all replicas.
pub(super) struct Merged {
    pub(super) admitted: Vec<RequestId>,
    pub(super) finished: Vec<Completion>,
}

impl<B: Backend> Spread<B> {
    pub(super) fn new(replicas: Ranks) -> Self {
        Self { replicas, samples: BTreeMap::new(), others: Counts::default(), digest: Digest::default() }
    }

    /// Decides which replica computes a sample; true if it is this one.
    pub(super) fn place(&mut self, task: &SampleTask<B>) -> bool {
        let mut held = vec![0; self.replicas.world()];
        self.samples.values().for_each(|sample| held[sample.replica] += sample.work);
        let replica = (0..held.len()).min_by_key(|replica| held[*replica]).unwrap_or(0);
        let placed = Placed {
            replica,
            share: Arc::clone(&task.share.name),
            work: task.work(),
            _weights: task.weights.clone(),
            _embeddings: task.images.embeddings().collect(),
            sequences: BTreeMap::new(),
        };
        self.samples.insert(task.id.clone(), placed);
        replica == self.replicas.rank()
    }

    /// Names of the shares of unfinished samples, one for each.
    pub(super) fn shares(&self) -> impl Iterator<Item = &str> {
        self.samples.values().map(|sample| &*sample.share)
    }

    /// Whether all samples have ended.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub(super) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.samples.retain(|id, _| !ids.contains(id));
    }

    /// Tokens of each sequence of a sample that this replica has reported.
    pub(super) fn reported(&self, id: &RequestId, sequences: usize) -> Vec<usize> {
        let known = |sequence| Some(self.samples.get(id)?.sequences.get(&sequence)?.len());
        (0..sequences).map(|sequence| known(sequence).unwrap_or(0)).collect()
    }

    /// Tokens of a sample beyond the known ones, a count per sequence.
    pub(super) fn sampled_since(&self, id: &RequestId, known: &[usize]) -> Vec<SampleProgress> {
        let Some(sample) = self.samples.get(id) else { return Vec::new() };
        let from = |sequence: usize| known.get(sequence).copied().unwrap_or(0);
        let since = |(at, sequence): (&usize, &SequenceProgress)| sequence.since(*at, from(*at));
        sample.sequences.iter().filter_map(since).collect()
    }

    /// Exchanges reports with the other replicas. Results are in the order of replicas.
    pub(super) fn exchange(&mut self, own: Report) -> Merged {
        let mut merged = Merged { admitted: Vec::new(), finished: Vec::new() };
        self.others = Counts::default();
        for (replica, report) in self.replicas.all_of(own).into_iter().enumerate() {
            if replica != self.replicas.rank() {
                self.others.add(report.counts);
            }
            self.digest.add(report.digest);
            merged.admitted.extend(report.admitted);
            for (id, progress) in report.progress {
                let Some(sample) = self.samples.get_mut(&id) else { continue };
                for part in progress {
                    sample.sequences.entry(part.sequence).or_default().extend(part);
                }
            }
            for (id, result) in report.finished {
                self.samples.remove(&id);
                merged.finished.push(Completion::new(id, result.map(OpResult::Sample)));
            }
        }
        merged
    }

    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    /// The statistics of all replicas, given those of this one.
    pub(super) fn add_others(&self, own: EngineStats) -> EngineStats {
        let mut all = Counts::of(&own);
        all.add(self.others);
        EngineStats {
            sampling_passes: all.passes,
            prompt_tokens: all.prompt_tokens,
            sampled_tokens: all.sampled_tokens,
            active_samples: all.active,
            kv_bytes: all.kv_bytes,
            ..own
        }
    }
}
