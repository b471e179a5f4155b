//! The keys and values of a sequence, and how many of its blocks the prefix cache holds.
//!
//! In models with recurrences or short convolutions the cache also keeps states: after every [`STATE_INTERVAL`] tokens, and after the last full block of
//! the prompt, from where requests with the same prompt and further turns of a conversation continue. Passes end there.

use std::ops::Range;

use super::prefix::{BlockTokens, NodeId, PrefixCache};
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::model::KvSequence;

/// Tokens between recurrent states that the cache keeps.
const STATE_INTERVAL: usize = 512;

/// Blocks that hold the keys and values of `tokens` tokens.
pub(super) fn blocks(tokens: usize) -> usize {
    tokens.div_ceil(BLOCK)
}

/// The tokens of a prompt or of a sequence that continues it.
#[derive(Clone, Copy)]
pub(super) struct SequenceTokens<'a> {
    pub(super) prompt: &'a [u32],
    /// What identifies the prompt's tokens in the prefix cache: the tokens themselves, but those of images.
    pub(super) keys: &'a [u32],
    pub(super) generated: &'a [u32],
}

impl SequenceTokens<'_> {
    pub(super) fn len(&self) -> usize {
        self.prompt.len() + self.generated.len()
    }

    /// Appends the tokens at `positions` to `out`.
    pub(super) fn copy_to(&self, positions: Range<usize>, out: &mut Vec<u32>) {
        let split = self.prompt.len();
        out.extend_from_slice(&self.prompt[positions.start.min(split)..positions.end.min(split)]);
        out.extend_from_slice(&self.generated[positions.start.max(split) - split..positions.end.max(split) - split]);
    }

    /// The cache key of block `at`, if it is full.
    fn block(&self, at: usize) -> Option<BlockTokens> {
        let start = at * BLOCK;
        let token = |i: usize| self.keys.get(i).or_else(|| self.generated.get(i - self.keys.len())).copied();
        let mut tokens = [0; BLOCK];
        for (i, to) in tokens.iter_mut().enumerate() {
            *to = token(start + i)?;
        }
        Some(tokens)
    }
}

/// Where streams of a request begin.
#[derive(Clone, Copy)]
pub(super) struct StreamRoot {
    /// The prefix cache's root for the request's weights.
    pub(super) node: NodeId,
    /// Bytes of a sequence's state; 0 in models whose blocks keep none.
    pub(super) state_bytes: usize,
}

/// Keys and values of a sequence. Its leading blocks are shared with the prefix cache.
#[derive(Clone, Default)]
pub(super) struct KvStream {
    pub(super) kv: KvSequence,
    /// Bytes of the state; 0 in models whose blocks keep none.
    state_bytes: usize,
    /// Leading blocks that the cache holds as well.
    cached: usize,
    /// The cache node of the last of them, or the root.
    node: NodeId,
}

impl KvStream {
    pub(super) fn new(root: StreamRoot) -> Self {
        Self { kv: KvSequence::continued(), state_bytes: root.state_bytes, cached: 0, node: root.node }
    }

    /// Leading blocks that the cache holds as well.
    pub(super) fn cached(&self) -> usize {
        self.cached
    }

    /// Blocks that the cache does not hold.
    pub(super) fn own_blocks(&self) -> usize {
        self.kv.blocks().len().saturating_sub(self.cached)
    }

    /// The cache key of the next block, if computation is at its start and all of its tokens are known. Streams with
    /// equal keys are about to compute the same block.
    pub(super) fn next_block(&self, sequence: SequenceTokens<'_>) -> Option<(NodeId, BlockTokens)> {
        let aligned = self.kv.len() == self.cached * BLOCK;
        sequence.block(self.cached).filter(|_| aligned).map(|tokens| (self.node, tokens))
    }

    /// Extends the stream with blocks from the cache, up to `limit` tokens. Returns the number of tokens added.
    pub(super) fn attach_cached<B: Backend>(
        &mut self,
        cache: &mut PrefixCache<B>,
        sequence: SequenceTokens<'_>,
        limit: usize,
    ) -> usize {
        let before = self.kv.len();
        if self.is_recurrent() {
            self.attach_up_to_state(cache, sequence, limit);
            return self.kv.len() - before;
        }
        while self.kv.len() < limit
            && let Some((node, tokens)) = self.next_block(sequence)
            && let Some((id, block)) = cache.get(node, &tokens)
        {
            self.kv.attach(block, limit.min((self.cached + 1) * BLOCK));
            self.cached += 1;
            self.node = id;
        }
        self.kv.len() - before
    }

    /// [`KvStream::attach_cached`] up to the last block after which the cache has the recurrent state.
    fn attach_up_to_state<B: Backend>(
        &mut self,
        cache: &mut PrefixCache<B>,
        sequence: SequenceTokens<'_>,
        limit: usize,
    ) {
        if self.kv.len() != self.cached * BLOCK {
            return;
        }
        let (mut node, mut found, mut last) = (self.node, Vec::new(), None);
        while (self.cached + found.len() + 1) * BLOCK <= limit
            && let Some(tokens) = sequence.block(self.cached + found.len())
            && let Some((id, block)) = cache.get(node, &tokens)
        {
            found.push((id, block));
            node = id;
            last = cache.state(id).map(|state| (found.len(), state)).or(last);
        }
        let Some((count, state)) = last else { return };
        for (id, block) in found.into_iter().take(count) {
            self.cached += 1;
            self.kv.attach(block, self.cached * BLOCK);
            self.node = id;
        }
        self.kv.set_state(state);
    }

    /// Whether blocks of the model keep a state.
    pub(super) fn is_recurrent(&self) -> bool {
        self.state_bytes > 0
    }

    /// Whether the cache keeps the recurrent state after `len` tokens.
    pub(super) fn keeps_state(&self, sequence: SequenceTokens<'_>, len: usize) -> bool {
        self.is_recurrent() && len > 0 && (len.is_multiple_of(STATE_INTERVAL) || len == last_full_block(sequence))
    }

    /// Position at which a pass over the stream ends at the latest: the next one whose recurrent state is kept, or the end.
    pub(super) fn pass_end(&self, sequence: SequenceTokens<'_>) -> usize {
        let (start, end) = (self.kv.len(), sequence.len());
        if !self.is_recurrent() {
            return end;
        }
        let kept = [(start / STATE_INTERVAL + 1) * STATE_INTERVAL, last_full_block(sequence)];
        kept.into_iter().filter(|position| *position > start).fold(end, usize::min)
    }

    /// Inserts full blocks of `bytes` bytes each into the cache; where it holds an equal block, replaces the own one.
    pub(super) fn publish<B: Backend>(
        &mut self,
        cache: &mut PrefixCache<B>,
        sequence: SequenceTokens<'_>,
        bytes: usize,
    ) {
        while (self.cached + 1) * BLOCK <= self.kv.len()
            && let Some(tokens) = sequence.block(self.cached)
        {
            let (id, block) = cache.insert(self.node, &tokens, &self.kv.blocks()[self.cached], bytes);
            self.kv.replace(self.cached, block);
            self.cached += 1;
            self.node = id;
        }
        let len = self.kv.len();
        let is_kept = self.keeps_state(sequence, len) && len == self.cached * BLOCK;
        if let Some(state) = self.kv.state().filter(|_| is_kept) {
            cache.keep_state(self.node, state, self.state_bytes);
        }
    }
}

/// Position after the last full block of the prompt.
fn last_full_block(sequence: SequenceTokens<'_>) -> usize {
    sequence.prompt.len() / BLOCK * BLOCK
}
