//! Snapshots in memory for sampling, and the bytes that they take.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::Backend;
use crate::engine::sampler::SamplerWeights;

/// Weights of a snapshot, with their bytes.
struct Snapshot<B: Backend> {
    weights: SamplerWeights<B>,
    bytes: usize,
}

/// Snapshots by key. Those that were dropped count as long as samples use them.
pub(crate) struct Snapshots<B: Backend> {
    by_key: BTreeMap<String, Snapshot<B>>,
    dropped: Vec<Snapshot<B>>,
}

impl<B: Backend> Default for Snapshots<B> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), dropped: Vec::new() }
    }
}

impl<B: Backend> Snapshots<B> {
    pub(crate) fn get(&self, key: &str) -> Option<SamplerWeights<B>> {
        self.by_key.get(key).map(|snapshot| snapshot.weights.clone())
    }

    /// Adds a snapshot of `bytes` bytes; it replaces one of the same key.
    pub(crate) fn insert(&mut self, key: String, weights: SamplerWeights<B>, bytes: usize) {
        let replaced = self.by_key.insert(key, Snapshot { weights, bytes });
        self.retire(replaced);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        let removed = self.by_key.remove(key);
        self.retire(removed);
    }

    /// Counts a dropped snapshot on, unless one with the same weights is counted already.
    fn retire(&mut self, snapshot: Option<Snapshot<B>>) {
        self.dropped.extend(snapshot.filter(|new| !self.dropped.iter().any(|old| new.weights.is_same(&old.weights))));
    }

    /// Frees dropped snapshots that samples no longer use.
    pub(crate) fn free_unused(&mut self) {
        self.dropped.retain(|snapshot| snapshot.weights.is_shared());
    }

    /// Bytes of all, each counted in full.
    pub(crate) fn bytes(&self) -> usize {
        self.by_key.values().chain(&self.dropped).map(|snapshot| snapshot.bytes).sum()
    }
}

impl<B: Backend> SamplerWeights<B> {
    fn is_same(&self, other: &Self) -> bool {
        match (&self.adapter, &other.adapter) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => Arc::ptr_eq(&self.weights, &other.weights),
            _ => false,
        }
    }

    /// Whether its adapter, or where it has none its weights, have another holder.
    pub(crate) fn is_shared(&self) -> bool {
        self.adapter.as_ref().map_or_else(|| Arc::strong_count(&self.weights), Arc::strong_count) > 1
    }
}
