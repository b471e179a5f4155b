//! A least-recently-used cache of sampler weights that were read from checkpoint folders.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::SamplerWeights;
use crate::backend::Backend;

/// The weights of a folder.
struct CheckpointEntry<B: Backend> {
    dir: PathBuf,
    weights: SamplerWeights<B>,
    bytes: usize,
}

/// Holds up to `limit` bytes, and always the entry used last.
pub(in super::super) struct CheckpointCache<B: Backend> {
    /// In bytes.
    limit: usize,
    /// By folder, most recently used last.
    entries: VecDeque<CheckpointEntry<B>>,
}

impl<B: Backend> CheckpointCache<B> {
    pub(in super::super) fn new(limit: usize) -> Self {
        Self { limit, entries: VecDeque::new() }
    }

    /// The weights of a folder, if they are cached; marks them as most recently used.
    pub(in super::super) fn get(&mut self, dir: &Path) -> Option<SamplerWeights<B>> {
        let at = self.entries.iter().position(|entry| entry.dir == dir)?;
        let entry = self.entries.remove(at)?;
        let weights = entry.weights.clone();
        self.entries.push_back(entry);
        Some(weights)
    }

    /// Caches the weights of a folder and evicts the least recently used ones. Samples in progress hold theirs.
    pub(in super::super) fn put(&mut self, backend: &B, dir: PathBuf, weights: SamplerWeights<B>) {
        self.invalidate(&dir);
        let bytes = weights.own_bytes(backend);
        self.entries.push_back(CheckpointEntry { dir, weights, bytes });
        while self.bytes() > self.limit && self.entries.len() > 1 {
            self.entries.pop_front();
        }
    }

    /// Bytes of all entries.
    pub(in super::super) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Removes the weights of a folder that was overwritten.
    pub(in super::super) fn invalidate(&mut self, dir: &Path) {
        self.entries.retain(|entry| entry.dir != dir);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use super::*;
    use crate::backend::HostBackend;
    use crate::engine::sampler::tests::{adapter, base};

    #[test]
    fn the_least_recently_used_is_evicted_beyond_the_limit() {
        let base = base("llama");
        let weights = SamplerWeights { adapter: Some(adapter(&base, 1)), ..SamplerWeights::of_base(base) };
        let backend = HostBackend::new(1);
        let mut cache = CheckpointCache::new(2 * weights.own_bytes(&backend));
        let [a, b, c] = ["a", "b", "c"].map(Path::new);
        cache.put(&backend, a.into(), weights.clone());
        cache.put(&backend, b.into(), weights.clone());
        assert!(cache.get(a).is_some());
        cache.put(&backend, c.into(), weights.clone());
        assert!(cache.get(b).is_none() && cache.get(a).is_some() && cache.get(c).is_some());
        let found = cache.get(a).and_then(|found| found.adapter);
        assert!(found.is_some_and(|found| Arc::ptr_eq(&found, weights.adapter.as_ref().unwrap())));
        cache.invalidate(a);
        assert!(cache.get(a).is_none());
        let mut tight = CheckpointCache::new(1);
        tight.put(&backend, a.into(), weights.clone());
        assert!(tight.get(a).is_some(), "the last one stays");
        tight.put(&backend, b.into(), weights);
        assert!(tight.get(a).is_none() && tight.get(b).is_some());
    }
}
