//! Sampler weights that were read from checkpoint folders: all that are in memory, in use or cached.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::weights::SamplerWeights;
use crate::backend::Backend;

/// The weights of a folder.
struct CheckpointEntry<B: Backend> {
    /// `None` once the folder was overwritten: samples that use the weights go on.
    dir: Option<PathBuf>,
    weights: SamplerWeights<B>,
    bytes: usize,
}

impl<B: Backend> CheckpointEntry<B> {
    /// A folder can be read for several names of its base model, whose configurations may differ.
    fn is(&self, dir: &Path, base: &str) -> bool {
        self.dir.as_deref() == Some(dir) && self.weights.base.name == base
    }
}

/// Evicts the least recently used weights beyond a limit; those that samples use stay.
pub(in super::super) struct CheckpointCache<B: Backend> {
    /// Limit of all weights, in bytes.
    limit: usize,
    /// Entries by last use, the most recent one last.
    entries: VecDeque<CheckpointEntry<B>>,
}

impl<B: Backend> CheckpointCache<B> {
    pub(in super::super) fn new(limit: usize) -> Self {
        Self { limit, entries: VecDeque::new() }
    }

    pub(in super::super) fn limit(&self) -> usize {
        self.limit
    }

    /// The weights of a folder on the base model `base`, if they are cached; marks them as most recently used.
    pub(in super::super) fn get(&mut self, dir: &Path, base: &str) -> Option<SamplerWeights<B>> {
        let at = self.entries.iter().position(|entry| entry.is(dir, base))?;
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
        self.forget(|entry| entry.is(&dir, &weights.base.name));
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
        self.forget(|entry| entry.dir.as_deref() == Some(dir));
    }

    fn forget(&mut self, which: impl Fn(&CheckpointEntry<B>) -> bool) {
        self.entries.iter_mut().filter(|entry| which(entry)).for_each(|entry| entry.dir = None);
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
        assert!(cache.get(a, "llama").is_some());
        cache.put(&backend, c.into(), weights(&base, 3));
        assert!(cache.get(b, "llama").is_none() && cache.get(a, "llama").is_some() && cache.get(c, "llama").is_some());
        cache.invalidate(a);
        assert_eq!((cache.get(a, "llama").is_none(), cache.bytes()), (true, bytes));
        let mut tight = CheckpointCache::new(1);
        tight.put(&backend, a.into(), weights(&base, 1));
        assert!(tight.get(a, "llama").is_some(), "the last one stays");
        assert!(tight.make_room(bytes), "nothing else is left");
        tight.put(&backend, b.into(), weights(&base, 2));
        assert!(tight.get(a, "llama").is_none() && tight.get(b, "llama").is_some());
    }

    #[test]
    fn what_samples_use_is_counted_and_stays() {
        let (base, backend) = (base("llama"), HostBackend::new(1));
        let bytes = weights(&base, 1).own_bytes(&backend);
        let mut cache = CheckpointCache::new(bytes);
        let a = Path::new("a");
        cache.put(&backend, a.into(), weights(&base, 1));
        let used = cache.get(a, "llama").unwrap();
        assert!(!cache.make_room(bytes));
        cache.invalidate(a);
        assert_eq!((cache.get(a, "llama").is_none(), cache.bytes()), (true, bytes));
        assert!(!cache.make_room(bytes));
        drop(used);
        assert!(cache.make_room(bytes));
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn each_name_of_a_base_model_has_weights_of_its_own() {
        let (base, other, backend) = (base("llama"), base("qwen2"), HostBackend::new(1));
        let mut cache = CheckpointCache::new(usize::MAX);
        let a = Path::new("a");
        cache.put(&backend, a.into(), weights(&base, 1));
        assert!(cache.get(a, "qwen2").is_none());
        cache.put(&backend, a.into(), weights(&other, 1));
        for name in ["llama", "qwen2"] {
            assert_eq!(cache.get(a, name).unwrap().base.name, name);
        }
        cache.invalidate(a);
        assert!(["llama", "qwen2"].iter().all(|name| cache.get(a, name).is_none()));
    }
}
