//! Keys and values of sequences, in blocks that sequences share, and the states of recurrences and short convolutions; both are
//! copied on write.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{AttentionShape, Backend, BlockId, IndexerOps, KV_BLOCK, Span, StateId, StateOps, StateShape};

/// Blocks or states without holders, not yet released to the backend.
type Freed<T> = Arc<Mutex<Vec<T>>>;

/// Locks a pool or its list. A pass that panicked fails its requests, whose blocks are freed with them.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic between two writes leaves ids that are free or in use, as before.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reference to a block of the pool; the block is freed when the last one is dropped.
#[derive(Debug)]
pub struct KvBlock {
    id: BlockId,
    freed: Freed<BlockId>,
}

impl Drop for KvBlock {
    fn drop(&mut self) {
        lock(&self.freed).push(self.id);
    }
}

/// A reference to a recurrent state of the pool; the state is freed when the last one is dropped.
#[derive(Debug)]
pub struct RecurrentState {
    id: StateId,
    freed: Freed<StateId>,
}

impl Drop for RecurrentState {
    fn drop(&mut self) {
        lock(&self.freed).push(self.id);
    }
}

/// Keys and values of a sequence, and its recurrent state; clones share them, and they are copied on write.
#[derive(Clone, Debug, Default)]
pub struct KvSequence {
    blocks: Vec<Arc<KvBlock>>,
    len: usize,
    /// Tokens of attached blocks: their keys and values are computed already and are not written.
    attached: usize,
    /// Whether later passes continue the sequence: its recurrent state is kept.
    is_continued: bool,
    /// Recurrent state after `len` tokens, in models whose blocks keep one.
    state: Option<Arc<RecurrentState>>,
}

impl KvSequence {
    /// An empty sequence that several passes extend.
    pub fn continued() -> Self {
        Self { is_continued: true, ..Self::default() }
    }

    /// The recurrent state after all tokens held, in models whose blocks keep one.
    pub fn state(&self) -> Option<&Arc<RecurrentState>> {
        self.state.as_ref()
    }

    /// Whether the next pass updates the recurrent state in place: it exists, and nothing else holds it.
    pub fn owns_state(&self) -> bool {
        self.state.as_ref().is_some_and(|state| Arc::strong_count(state) == 1)
    }

    /// Continues from the state that another sequence reached after the same tokens as this one holds.
    pub fn set_state(&mut self, state: Arc<RecurrentState>) {
        self.state = Some(state);
    }

    /// Number of tokens held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no positions yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Blocks of the sequence; the last one may be partly filled.
    pub fn blocks(&self) -> &[Arc<KvBlock>] {
        &self.blocks
    }

    /// Appends a full block that another sequence computed from the same tokens, to a sequence of full blocks only, and
    /// sets its length to `len` tokens. Where the next pass starts before the block's end, it recomputes those rows and does
    /// not write them.
    pub fn attach(&mut self, block: Arc<KvBlock>, len: usize) {
        self.blocks.push(block);
        self.attached = self.blocks.len() * KV_BLOCK;
        self.len = len;
    }

    /// Replaces block `at` by an equal one that another sequence computed from the same tokens.
    pub fn replace(&mut self, at: usize, block: Arc<KvBlock>) {
        self.blocks[at] = block;
    }

    /// Records that tokens up to `len` have been written in every layer.
    pub fn set_len(&mut self, len: usize) {
        self.len = len;
    }
}

/// A model's pools of blocks and of recurrent states, copied on write.
pub struct KvCache<B: Backend> {
    shape: AttentionShape,
    pool: B::KvPool,
    freed: Freed<BlockId>,
    has_states: bool,
    states: <B::Family as StateOps<B>>::StatePool,
    freed_states: Freed<StateId>,
}

impl<B: Backend> KvCache<B> {
    /// Returns an empty cache for layers of a shape, and for mixers with these states.
    pub fn new(backend: &B, shape: &AttentionShape, states: &[StateShape]) -> Self {
        Self {
            shape: *shape,
            pool: backend.kv_pool(shape),
            freed: Freed::default(),
            has_states: !states.is_empty(),
            states: B::Family::state_pool(backend, states),
            freed_states: Freed::default(),
        }
    }

    /// The pool, for ops.
    pub fn pool(&self) -> &B::KvPool {
        &self.pool
    }

    /// The pool of states, for ops.
    pub fn states(&mut self) -> &mut <B::Family as StateOps<B>>::StatePool {
        &mut self.states
    }

    /// Releases the blocks and states without holders to the backend.
    pub fn reclaim(&mut self, backend: &B) {
        for block in lock(&self.freed).drain(..) {
            backend.kv_release(&mut self.pool, block);
        }
        for state in lock(&self.freed_states).drain(..) {
            B::Family::state_release(backend, &mut self.states, state);
        }
    }

    fn take_state(&mut self, backend: &B) -> Arc<RecurrentState> {
        let id = B::Family::state_take(backend, &mut self.states);
        Arc::new(RecurrentState { id, freed: Arc::clone(&self.freed_states) })
    }

    /// The state that a pass over a sequence updates: a new one, its own, or a copy of one that is shared.
    fn state(&mut self, backend: &B, kv: &mut KvSequence) -> Option<StateId> {
        if !self.has_states || !kv.is_continued {
            return None;
        }
        let own = match kv.state.take() {
            None => self.take_state(backend),
            Some(state) if Arc::strong_count(&state) == 1 => state,
            Some(shared) => {
                let own = self.take_state(backend);
                B::Family::state_copy(backend, &mut self.states, shared.id, own.id);
                own
            }
        };
        Some(kv.state.insert(own).id)
    }

    fn alloc(&mut self, backend: &B) -> Arc<KvBlock> {
        Arc::new(KvBlock { id: backend.kv_take(&mut self.pool), freed: Arc::clone(&self.freed) })
    }

    /// Prepares the blocks that a pass writes: allocates those beyond the sequences' last ones, and copies those that are
    /// shared. `rows` are each sequence's rows of the batch and the position of the first one.
    pub fn extend(&mut self, backend: &B, rows: &[(Range<usize>, usize)], sequences: &mut [KvSequence]) -> Vec<Span> {
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
        let state = self.state(backend, kv);
        let blocks = kv.blocks.iter().map(|block| block.id).collect();
        Span { rows: rows.clone(), start, blocks, held: kv.attached, state }
    }

    /// Writes the keys of an indexer.
    pub fn write_index(&mut self, backend: &B, layer: usize, spans: &[Span], keys: &B::Rows) {
        B::Family::write_index(backend, &mut self.pool, layer, spans, keys);
    }

    /// Writes the keys and values of a layer.
    pub fn write(&mut self, backend: &B, layer: usize, spans: &[Span], qkv: &B::Rows) {
        backend.kv_write(&mut self.pool, &self.shape, layer, spans, qkv);
    }
}
