//! The keys and values that a pass writes and reads.

use std::sync::{Mutex, MutexGuard};

use crate::backend::kv::{KvCache, lock};
use crate::backend::{AttentionShape, Backend};

/// A pool of keys and values as a pass uses it.
pub(crate) struct PassKv<'m, B: Backend> {
    pub(super) pool: &'m Mutex<KvCache<B>>,
    /// Extents of the pool.
    pub(super) shape: &'m AttentionShape,
    /// Whether the pool has one layer, which the blocks of the model write in turns.
    pub(super) is_shared: bool,
}

impl<B: Backend> Clone for PassKv<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for PassKv<'_, B> {}

impl<'m, B: Backend> PassKv<'m, B> {
    pub(super) fn lock(&self) -> MutexGuard<'m, KvCache<B>> {
        lock(self.pool)
    }

    /// Returns the layer of the pool for the model's layer `index` of that kind.
    pub(super) fn layer(&self, index: usize) -> usize {
        if self.is_shared { 0 } else { index }
    }
}
