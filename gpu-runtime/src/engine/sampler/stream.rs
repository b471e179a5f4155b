//! The keys and values of a sequence, and how many of its blocks the prefix cache holds.

use std::ops::Range;

use super::prefix::{BlockTokens, NodeId, PrefixCache};
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::model::KvSequence;

/// Blocks that hold the keys and values of `tokens` tokens.
pub(super) fn blocks(tokens: usize) -> usize {
    tokens.div_ceil(BLOCK)
}

/// The tokens of a prompt or of a sequence that continues it.
#[derive(Clone, Copy)]
pub(super) struct SequenceTokens<'a> {
    pub(super) prompt: &'a [u32],
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

    /// The tokens of block `at`, if it is full.
    fn block(&self, at: usize) -> Option<BlockTokens> {
        let start = at * BLOCK;
        let token = |i: usize| self.prompt.get(i).or_else(|| self.generated.get(i - self.prompt.len())).copied();
        let mut tokens = [0; BLOCK];
        for (i, to) in tokens.iter_mut().enumerate() {
            *to = token(start + i)?;
        }
        Some(tokens)
    }
}

/// Keys and values of a sequence. Its leading blocks are shared with the prefix cache.
#[derive(Clone, Default)]
pub(super) struct KvStream {
    pub(super) kv: KvSequence,
    /// Leading blocks that the cache holds as well.
    cached: usize,
    /// The cache node of the last of them, or the root.
    node: NodeId,
}

impl KvStream {
    pub(super) fn new(root: NodeId) -> Self {
        Self { kv: KvSequence::default(), cached: 0, node: root }
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
    }
}
