//! Sampler weights that were read from checkpoint folders: all that are in memory, in use or cached.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::SamplerWeights;
use crate::backend::Backend;

/// The weights of a folder.
struct CheckpointEntry<B: Backend> {
    /// `None` once the folder was overwritten: samples that use the weights go on.
    dir: Option<PathBuf>,
    weights: SamplerWeights<B>,
    bytes: usize,
}

/// Evicts the least recently used weights beyond a limit; those that samples use stay.
pub(in super::super) struct CheckpointCache<B: Backend> {
    /// In bytes.
    limit: usize,
    /// Most recently used last.
    entries: VecDeque<CheckpointEntry<B>>,
}

impl<B: Backend> CheckpointCache<B> {
    pub(in super::super) fn new(limit: usize) -> Self {
        Self { limit, entries: VecDeque::new() }
    }

    pub(in super::super) fn limit(&self) -> usize {
        self.limit
    }

    /// The weights of a folder, if they are cached; marks them as most recently used.
    pub(in super::super) fn get(&mut self, dir: &Path) -> Option<SamplerWeights<B>> {
        let at = self.entries.iter().position(|entry| entry.dir.as_deref() == Some(dir))?;
        let entry = self.entries.remove(at)?;
        let weights = entry.weights.clone();
        self.entries.push_back(entry);
        Some(weights)
    }

    /// Evicts weights that no sample uses until `bytes` more are within the limit. Whether they are then: always, if nothing
    /// else is left.
    pub(in super::super) fn make_room(&mut self, bytes: usize) -> bool {
        while self.bytes() + bytes > self.limit {
            let Some(unused) = self.entries.iter().position(|entry| !entry.weights.is_shared()) else {
                return self.entries.is_empty();
            };
            self.entries.remove(unused);
        }
        true
    }

    /// Caches the weights of a folder.
    pub(in super::super) fn put(&mut self, backend: &B, dir: PathBuf, weights: SamplerWeights<B>) {
        self.invalidate(&dir);
        let bytes = weights.own_bytes(backend);
        self.make_room(bytes);
        self.entries.push_back(CheckpointEntry { dir: Some(dir), weights, bytes });
    }

    /// Bytes of all entries.
    pub(in super::super) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Removes the weights of a folder that was overwritten; they count as long as samples use them.
    pub(in super::super) fn invalidate(&mut self, dir: &Path) {
        let overwritten = self.entries.iter_mut().filter(|entry| entry.dir.as_deref() == Some(dir));
        overwritten.for_each(|entry| entry.dir = None);
        self.entries.retain(|entry| entry.dir.is_some() || entry.weights.is_shared());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use super::*;
    use crate::backend::HostBackend;
    use crate::engine::base::Base;
    use crate::engine::sampler::tests::{adapter, base};

    fn weights(base: &Arc<Base<HostBackend>>, seed: u64) -> SamplerWeights<HostBackend> {
        SamplerWeights { adapter: Some(adapter(base, seed)), ..SamplerWeights::of_base(Arc::clone(base)) }
    }

    #[test]
    fn the_least_recently_used_is_evicted_beyond_the_limit() {
        let (base, backend) = (base("llama"), HostBackend::new(1));
        let bytes = weights(&base, 1).own_bytes(&backend);
        let mut cache = CheckpointCache::new(2 * bytes);
        let [a, b, c] = ["a", "b", "c"].map(Path::new);
        cache.put(&backend, a.into(), weights(&base, 1));
        cache.put(&backend, b.into(), weights(&base, 2));
        assert!(cache.get(a).is_some());
        cache.put(&backend, c.into(), weights(&base, 3));
        assert!(cache.get(b).is_none() && cache.get(a).is_some() && cache.get(c).is_some());
        cache.invalidate(a);
        assert_eq!((cache.get(a).is_none(), cache.bytes()), (true, bytes));
        let mut tight = CheckpointCache::new(1);
        tight.put(&backend, a.into(), weights(&base, 1));
        assert!(tight.get(a).is_some(), "the last one stays");
        assert!(tight.make_room(bytes), "nothing else is left");
        tight.put(&backend, b.into(), weights(&base, 2));
        assert!(tight.get(a).is_none() && tight.get(b).is_some());
    }

    #[test]
    fn what_samples_use_is_counted_and_stays() {
        let (base, backend) = (base("llama"), HostBackend::new(1));
        let bytes = weights(&base, 1).own_bytes(&backend);
        let mut cache = CheckpointCache::new(bytes);
        let a = Path::new("a");
        cache.put(&backend, a.into(), weights(&base, 1));
        let used = cache.get(a).unwrap();
        assert!(!cache.make_room(bytes));
        cache.invalidate(a);
        assert_eq!((cache.get(a).is_none(), cache.bytes()), (true, bytes));
        assert!(!cache.make_room(bytes));
        drop(used);
        assert!(cache.make_room(bytes));
        assert_eq!(cache.bytes(), 0);
    }
}
