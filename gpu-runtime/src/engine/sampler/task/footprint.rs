//! The KV memory of a request: what it holds, what a pass adds, and what admission reserves for it.

use super::{SampleTask, Sequence, StreamTarget};
use crate::backend::{Backend, KV_BLOCK as BLOCK};
use crate::engine::sampler::stream::{KvStream, blocks};

/// Tokens beyond the current length of a sequence for which admission reserves blocks.
const RESERVED_TOKENS: usize = 128;

impl<B: Backend> SampleTask<B> {
    /// Bytes of a block of keys and values.
    pub(in super::super) fn block_bytes(&self) -> usize {
        self.weights.weights.model.kv_block_bytes
    }

    /// Bytes of all running sequences with [`RESERVED_TOKENS`] further tokens each, shared blocks counted per sequence.
    pub(in super::super) fn footprint_bytes(&self) -> usize {
        self.running().map(|(_, sequence)| self.blocks_with_reserve(sequence)).sum::<usize>() * self.block_bytes()
    }

    /// Blocks of a sequence with [`RESERVED_TOKENS`] further tokens, at most those of its largest length.
    fn blocks_with_reserve(&self, sequence: &Sequence) -> usize {
        let longest = self.prompt.len() + self.max_new - 1;
        blocks(longest.min(self.prompt.len() + sequence.tokens.len() + RESERVED_TOKENS))
    }

    /// Blocks that running sequences with [`RESERVED_TOKENS`] further tokens need and the cache does not hold.
    pub(in super::super) fn reserved_blocks(&self) -> usize {
        if self.decodes {
            let uncached = |s: &Sequence| self.blocks_with_reserve(s).saturating_sub(s.stream.cached());
            return self.running().map(|(_, s)| uncached(s)).sum();
        }
        let full = self.prompt.len() / BLOCK;
        let own: usize = self.running().map(|(_, s)| self.blocks_with_reserve(s) - full).sum();
        full.saturating_sub(self.shared.cached()) + own
    }

    /// Blocks that it holds outside the cache.
    pub(in super::super) fn own_blocks(&self) -> usize {
        self.shared.own_blocks() + self.sequences.iter().map(|s| s.stream.own_blocks()).sum::<usize>()
    }

    /// Blocks that computing a target up to position `end` adds. At the end of the prompt every sequence gets a copy of
    /// its partly filled last block.
    pub(in super::super) fn growth(&self, target: StreamTarget, end: usize) -> usize {
        let begins = target == StreamTarget::Prompt && end == self.prompt.len() && !end.is_multiple_of(BLOCK);
        let copies = if begins { self.sequences().saturating_sub(1) } else { 0 };
        blocks(end).saturating_sub(self.stream(target).1.kv.blocks().len()) + copies
    }

    /// Sets how many sequences run together: as many as `sequences` and `bytes` allow with their reserve, but at least
    /// one. They share the full blocks of the prompt.
    pub(in super::super) fn set_width(&mut self, sequences: usize, bytes: usize) {
        self.width = self.sequences.len();
        let (full, budget) = (self.prompt.len() / BLOCK, bytes / self.block_bytes());
        let mut needed = full;
        let fitting = self.running().take(sequences).take_while(|(_, sequence)| {
            needed += self.blocks_with_reserve(sequence) - full;
            needed <= budget
        });
        self.width = fitting.count().max(1);
    }

    /// Runs one sequence less from now on, and releases the blocks of those that no longer run. Returns false, changing
    /// nothing, if only one runs.
    pub(in super::super) fn reduce_width(&mut self) -> bool {
        let running = self.sequences();
        if running < 2 {
            return false;
        }
        self.width = running - 1;
        let unfinished = self.sequences.iter_mut().filter(|sequence| sequence.end.is_none());
        unfinished.skip(self.width).for_each(|sequence| sequence.stream = KvStream::new(self.root));
        true
    }
}
