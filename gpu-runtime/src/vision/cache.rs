//! Embeddings of images that were computed before, least recently used first out.
//!
//! The time that a request takes reveals whether its image was cached. Entries therefore belong to a tenant, so that
//! other tenants' images are not revealed. Towers are frozen, so entries stay valid for all runs and snapshots of a
//! base model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trainyard_protocol::ImageDigest;

use super::embedding::ImageEmbedding;
use crate::backend::Backend;

/// An image of a tenant, as a base model sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImageKey {
    /// Name of the tenant's share.
    pub(crate) tenant: Arc<str>,
    /// Digest of the tower's model.
    pub(crate) model: Arc<str>,
    pub(crate) digest: ImageDigest,
}

struct Entry<B: Backend> {
    embedding: Arc<ImageEmbedding<B>>,
    bytes: usize,
    /// Value of the clock at the last use.
    used: u64,
}

/// Cached embeddings, bounded in bytes. Entries in use stay.
pub(crate) struct EmbeddingCache<B: Backend> {
    entries: BTreeMap<ImageKey, Entry<B>>,
    /// Keys by last use.
    order: BTreeSet<(u64, ImageKey)>,
    limit: usize,
    bytes: usize,
    clock: u64,
}

impl<B: Backend> EmbeddingCache<B> {
    /// An empty cache that keeps at most `limit` bytes, apart from entries in use.
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), order: BTreeSet::new(), limit, bytes: 0, clock: 0 }
    }

    /// Bytes of all entries.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.bytes
    }

    /// The embedding of an image, if it is here.
    pub(crate) fn get(&mut self, key: &ImageKey) -> Option<Arc<ImageEmbedding<B>>> {
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&(entry.used, key.clone()));
        self.clock += 1;
        entry.used = self.clock;
        self.order.insert((self.clock, key.clone()));
        Some(Arc::clone(&entry.embedding))
    }

    /// Adds an embedding, unless the image has one, and evicts entries beyond the limit.
    pub(crate) fn insert(&mut self, key: ImageKey, embedding: Arc<ImageEmbedding<B>>) {
        if self.entries.contains_key(&key) {
            return;
        }
        self.clock += 1;
        let (bytes, used) = (embedding.bytes(), self.clock);
        self.bytes += bytes;
        self.order.insert((used, key.clone()));
        self.entries.insert(key, Entry { embedding, bytes, used });
        self.evict();
    }

    /// Removes entries that nothing uses, least recently used first, until the rest is within the limit.
    pub(crate) fn evict(&mut self) {
        let unused = |(_, key): &&(u64, ImageKey)| {
            self.entries.get(key).is_some_and(|entry| Arc::strong_count(&entry.embedding) == 1)
        };
        let mut excess = self.bytes.saturating_sub(self.limit);
        let mut evicted = Vec::new();
        for (used, key) in self.order.iter().filter(unused) {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(self.entries.get(key).map_or(0, |entry| entry.bytes));
            evicted.push((*used, key.clone()));
        }
        for entry in evicted {
            self.bytes -= self.entries.remove(&entry.1).map_or(0, |entry| entry.bytes);
            self.order.remove(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::reference::{Matrix, Reference};

    fn key(tenant: &str, image: u8) -> ImageKey {
        ImageKey { tenant: tenant.into(), model: "m".into(), digest: ImageDigest([image; 32]) }
    }

    /// An embedding of 40 bytes.
    fn embedding() -> Arc<ImageEmbedding<Reference>> {
        Arc::new(ImageEmbedding { rows: Matrix::new(vec![0.0; 6], 3), deepstack: vec![Matrix::new(vec![0.0; 4], 2)] })
    }

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let mut cache = EmbeddingCache::new(80);
        cache.insert(key("a", 1), embedding());
        cache.insert(key("a", 2), embedding());
        assert!(cache.get(&key("a", 1)).is_some());
        cache.insert(key("a", 3), embedding());
        assert_eq!(cache.bytes(), 80);
        assert!(cache.get(&key("a", 2)).is_none());
        assert!(cache.get(&key("a", 1)).is_some() && cache.get(&key("a", 3)).is_some());
    }

    #[test]
    fn entries_in_use_stay() {
        let mut cache = EmbeddingCache::new(0);
        let held = embedding();
        cache.insert(key("a", 1), Arc::clone(&held));
        cache.insert(key("a", 2), embedding());
        assert_eq!(cache.bytes(), 40);
        drop(held);
        cache.evict();
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn an_image_is_cached_for_its_tenant() {
        let mut cache = EmbeddingCache::new(1000);
        cache.insert(key("a", 1), embedding());
        assert!(cache.get(&key("b", 1)).is_none());
    }
}
