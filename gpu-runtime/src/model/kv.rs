//! Keys and values of sequences, in blocks that sequences share, copied on write.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{AttentionShape, Backend, BlockId, KV_BLOCK, Span};

/// Blocks without holders, not yet released to the backend.
type FreedBlocks = Arc<Mutex<Vec<BlockId>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic between two writes leaves ids that are free or in use, as before.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reference to a block of the pool; the block is freed when the last one is dropped.
#[derive(Debug)]
pub(crate) struct KvBlock {
    id: BlockId,
    freed: FreedBlocks,
}

impl Drop for KvBlock {
    fn drop(&mut self) {
        lock(&self.freed).push(self.id);
    }
}

/// Keys and values of a sequence; clones share their blocks, which are copied on write.
#[derive(Clone, Debug, Default)]
pub(crate) struct KvSequence {
    blocks: Vec<Arc<KvBlock>>,
    len: usize,
    /// Tokens of attached blocks: their keys and values are computed already and are not written.
    attached: usize,
}

impl KvSequence {
    /// Number of tokens held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Blocks of the sequence; the last one may be partly filled.
    pub(crate) fn blocks(&self) -> &[Arc<KvBlock>] {
        &self.blocks
    }

    /// Appends a full block that another sequence computed from the same tokens, to a sequence of full blocks only, and
    /// sets its length to `len` tokens. Where the next pass starts before the block's end, it recomputes those rows and does
    /// not write them.
    pub(crate) fn attach(&mut self, block: Arc<KvBlock>, len: usize) {
        self.blocks.push(block);
        self.attached = self.blocks.len() * KV_BLOCK;
        self.len = len;
    }

    /// Replaces block `at` by an equal one that another sequence computed from the same tokens.
    pub(crate) fn replace(&mut self, at: usize, block: Arc<KvBlock>) {
        self.blocks[at] = block;
    }

    /// Records that tokens up to `len` have been written in every layer.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len;
    }
}

/// A model's pool of blocks, copied on write.
pub(crate) struct KvCache<B: Backend> {
    shape: AttentionShape,
    pool: B::KvPool,
    freed: FreedBlocks,
}

impl<B: Backend> KvCache<B> {
    pub(crate) fn new(backend: &B, shape: &AttentionShape) -> Self {
        Self { shape: *shape, pool: backend.kv_pool(shape), freed: FreedBlocks::default() }
    }

    /// The pool, for ops.
    pub(crate) fn pool(&self) -> &B::KvPool {
        &self.pool
    }

    /// Releases the blocks without holders to the backend.
    pub(crate) fn reclaim(&mut self, backend: &B) {
        for block in lock(&self.freed).drain(..) {
            backend.kv_release(&mut self.pool, block);
        }
    }

    fn alloc(&mut self, backend: &B) -> Arc<KvBlock> {
        Arc::new(KvBlock { id: backend.kv_take(&mut self.pool), freed: Arc::clone(&self.freed) })
    }

    /// Prepares the blocks that a pass writes: allocates those beyond the sequences' last ones, and copies those that are
    /// shared. `rows` are each sequence's rows of the batch and the position of the first one.
    pub(crate) fn extend(
        &mut self,
        backend: &B,
        rows: &[(Range<usize>, usize)],
        sequences: &mut [KvSequence],
    ) -> Vec<Span> {
        self.reclaim(backend);
        rows.iter().zip(sequences).map(|((rows, start), kv)| self.span(backend, rows, *start, kv)).collect()
    }

    fn span(&mut self, backend: &B, rows: &Range<usize>, start: usize, kv: &mut KvSequence) -> Span {
        let end = start + rows.len();
        while kv.blocks.len() * KV_BLOCK < end {
            kv.blocks.push(self.alloc(backend));
        }
        let first = start.max(kv.attached);
        let written = if first < end { first / KV_BLOCK..end.div_ceil(KV_BLOCK) } else { 0..0 };
        for block in &mut kv.blocks[written] {
            if Arc::get_mut(block).is_none() {
                let own = self.alloc(backend);
                backend.kv_copy(&mut self.pool, block.id, own.id);
                *block = own;
            }
        }
        Span { rows: rows.clone(), start, blocks: kv.blocks.iter().map(|block| block.id).collect(), held: kv.attached }
    }

    /// Writes the keys and values of a layer.
    pub(crate) fn write(&mut self, backend: &B, layer: usize, spans: &[Span], qkv: &B::Rows) {
        backend.kv_write(&mut self.pool, &self.shape, layer, spans, qkv);
    }
}
