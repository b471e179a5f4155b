//! Samples from checkpoint folders. Their weights are read and packed on a separate thread, one folder at a time in the
//! order of the first sample of each, while the engine continues.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{OpError, RequestId, SampleOperation, TenantShare};

use super::background::Background;
use super::reader::{load_sampler, planned_bytes};
use crate::backend::Backend;
use crate::collective::Ranks;
use crate::engine::base::Base;
use crate::engine::sampler::{CheckpointCache, SamplerWeights};

/// A sample whose weights are not in memory yet.
pub(crate) struct CheckpointSample {
    pub(crate) id: RequestId,
    pub(crate) share: TenantShare,
    pub(crate) operation: SampleOperation,
}

/// A sample with its weights, or with the reason why there are none.
pub(super) type Resolved<B> = (CheckpointSample, Result<SamplerWeights<B>, OpError>);

/// A folder to read, and the samples that wait for it.
struct Load<B: Backend> {
    base: Arc<Base<B>>,
    dir: PathBuf,
    samples: Vec<CheckpointSample>,
    /// The folder was overwritten after the load began, or nobody waits for the load.
    stale: bool,
}

impl<B: Backend> Load<B> {
    fn resolved(self, weights: &Result<SamplerWeights<B>, OpError>) -> impl Iterator<Item = Resolved<B>> {
        self.samples.into_iter().map(|sample| (sample, weights.clone()))
    }
}

/// Weights of checkpoint folders, within a limit that counts those in use and the one that is being read.
pub(crate) struct CheckpointLoads<B: Backend> {
    cache: CheckpointCache<B>,
    /// Loads in order; the first one may be in progress.
    waiting: VecDeque<Load<B>>,
    /// Thread of the load in progress, with the bytes that it will take.
    thread: Background<usize, SamplerWeights<B>>,
    /// Whether a checkpoint beyond the limit is refused. Else it is loaded when nothing else is in memory.
    strict: bool,
}

impl<B: Backend> CheckpointLoads<B> {
    /// Loads with a limit of `limit` bytes.
    pub(crate) fn new(limit: usize, strict: bool) -> Self {
        let thread = Background::new("checkpoint load");
        Self { cache: CheckpointCache::new(limit), waiting: VecDeque::new(), thread, strict }
    }

    /// Loads each checkpoint on all of these ranks.
    pub(crate) fn on(self, ranks: &Ranks) -> Self {
        Self { thread: self.thread.on(ranks), ..self }
    }

    /// Whether no sample waits for weights.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of all weights, of the load in progress included.
    pub(crate) fn bytes(&self) -> usize {
        self.cache.bytes() + self.thread.pending().copied().unwrap_or(0)
    }

    /// Invalidates a folder in the cache, and a load of it; see [`CheckpointCache::invalidate`].
    pub(crate) fn invalidate(&mut self, dir: &Path) {
        self.cache.invalidate(dir);
        if let Some(load) = self.waiting.front_mut().filter(|load| load.dir == dir) {
            load.stale = !self.thread.is_idle();
        }
    }

    /// Queues a sample; [`CheckpointLoads::advance`] returns it with its weights.
    pub(crate) fn push(&mut self, base: Arc<Base<B>>, dir: PathBuf, sample: CheckpointSample) {
        let joins = |load: &&mut Load<B>| load.dir == dir && load.base.name == base.name && !load.stale;
        match self.waiting.iter_mut().find(joins) {
            Some(load) => load.samples.push(sample),
            None => self.waiting.push_back(Load { base, dir, samples: vec![sample], stale: false }),
        }
    }

    /// Removes samples that wait. A load in progress for which none is left ends between two of its tensors.
    pub(crate) fn cancel(&mut self, ids: &BTreeSet<RequestId>) {
        self.waiting.iter_mut().for_each(|load| load.samples.retain(|sample| !ids.contains(&sample.id)));
        let mut in_progress = !self.thread.is_idle();
        if let Some(load) = self.waiting.front_mut().filter(|load| in_progress && load.samples.is_empty()) {
            load.stale = true;
            self.thread.cancel_if(|_| true);
        }
        self.waiting.retain(|load| std::mem::take(&mut in_progress) || !load.samples.is_empty());
    }

    /// Completes the load in progress if it is done within `wait`, and starts the next one if there is room for it. Returns
    /// the samples that need to wait no longer.
    pub(crate) fn advance(&mut self, backend: &Arc<B>, wait: Duration) -> Vec<Resolved<B>> {
        let mut resolved = Vec::new();
        if let Some((_, loaded)) = self.thread.finished(wait)
            && let Some(load) = self.waiting.pop_front()
        {
            if let Ok(weights) = &loaded {
                self.cache.put(backend, load.dir.clone(), weights.clone());
            }
            if load.stale {
                self.cache.invalidate(&load.dir);
            }
            resolved.extend(load.resolved(&loaded));
        }
        while self.thread.is_idle()
            && let Some(next) = self.waiting.front()
        {
            let weights = match self.cache.get(&next.dir, &next.base.name) {
                Some(weights) => Ok(weights),
                None => match self.start(backend) {
                    Ok(()) => break,
                    Err(error) => Err(error),
                },
            };
            resolved.extend(self.waiting.pop_front().into_iter().flat_map(|load| load.resolved(&weights)));
        }
        resolved
    }

    /// Starts to read the first folder that samples wait for, if there is room.
    fn start(&mut self, backend: &Arc<B>) -> Result<(), OpError> {
        let Some(Load { base, dir, .. }) = self.waiting.front() else { return Ok(()) };
        let bytes = planned_bytes(&**backend, base, dir);
        if self.strict && bytes > self.cache.limit() {
            let [needed, limit] = [bytes, self.cache.limit()].map(|bytes| bytes.div_ceil(1 << 20));
            return Err(OpError::user(format!(
                "model_path: the checkpoint needs {needed} MiB of memory; at most {limit} MiB are for checkpoints"
            )));
        }
        if !self.cache.make_room(bytes) {
            return Ok(());
        }
        let (backend, base, dir) = (Arc::clone(backend), Arc::clone(base), dir.clone());
        self.thread.start(bytes, Box::new(move || load_sampler(&*backend, base, &dir)))
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
