//! A sequence's keys and values, and how far the cache has them.

use std::ops::Range;

use super::prefix::{BlockTokens, NodeId, PrefixCache};
use crate::kernels::attention::{BLOCK, KvSequence};

/// Blocks of keys and values that `tokens` tokens take.
pub(super) fn blocks(tokens: usize) -> usize {
    tokens.div_ceil(BLOCK)
}

/// The tokens of a sequence.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) prompt: &'a [u32],
    pub(super) generated: &'a [u32],
}

impl Text<'_> {
    pub(super) fn len(&self) -> usize {
        self.prompt.len() + self.generated.len()
    }

    /// Appends the tokens at `positions` to `out`.
    pub(super) fn copy(&self, positions: Range<usize>, out: &mut Vec<u32>) {
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

/// Keys and values of a sequence. Those of its leading blocks are in the cache, too.
#[derive(Clone, Default)]
pub(super) struct Stream {
    pub(super) kv: KvSequence,
    /// Leading blocks that the cache holds.
    cached: usize,
    /// The last of them, or the root.
    node: NodeId,
}

impl Stream {
    pub(super) fn new(root: NodeId) -> Self {
        Self { kv: KvSequence::default(), cached: 0, node: root }
    }

    /// Leading blocks that the cache holds.
    pub(super) fn cached(&self) -> usize {
        self.cached
    }

    /// Blocks that the cache does not hold.
    pub(super) fn own_blocks(&self) -> usize {
        self.kv.blocks().len().saturating_sub(self.cached)
    }

    /// What to compute next, if it is a full block: streams that agree in it are about to compute the same.
    pub(super) fn next_block(&self, text: Text<'_>) -> Option<(NodeId, BlockTokens)> {
        let aligned = self.kv.len() == self.cached * BLOCK;
        text.block(self.cached).filter(|_| aligned).map(|tokens| (self.node, tokens))
    }

    /// Takes from the cache what it has of the text, up to `limit` tokens. Returns how many tokens those were.
    pub(super) fn take(&mut self, cache: &mut PrefixCache, text: Text<'_>, limit: usize) -> usize {
        let before = self.kv.len();
        while self.kv.len() < limit
            && let Some((node, tokens)) = self.next_block(text)
            && let Some((id, block)) = cache.get(node, &tokens)
        {
            self.kv.attach(block, limit.min((self.cached + 1) * BLOCK));
            self.cached += 1;
            self.node = id;
        }
        self.kv.len() - before
    }

    /// Gives full blocks of `bytes` bytes to the cache, and uses the cache's where it has the same.
    pub(super) fn publish(&mut self, cache: &mut PrefixCache, text: Text<'_>, bytes: usize) {
        while (self.cached + 1) * BLOCK <= self.kv.len()
            && let Some(tokens) = text.block(self.cached)
        {
            let (id, block) = cache.insert(self.node, &tokens, &self.kv.blocks()[self.cached], bytes);
            self.kv.replace(self.cached, block);
            self.cached += 1;
            self.node = id;
        }
    }
}
